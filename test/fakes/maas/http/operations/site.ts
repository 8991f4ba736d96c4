import { badFields, notFound, notOneOf } from "../../engine/refusal.ts";
import { SCRIPTS } from "../../engine/scripts.ts";
import { settingNames } from "../../state/config-settings.ts";
import { API, DOMAIN, modelTime, viewMachine, viewPool, viewZone } from "../../view/machine.ts";
import type { Call, Reply } from "../call.ts";
import { json, plain } from "../call.ts";
import { mayView, requireAdmin } from "./access.ts";

const CAPABILITIES = [
  "networks-management",
  "static-ipaddresses",
  "ipv6-deployment-ubuntu",
  "devices-management",
  "storage-deployment-ubuntu",
  "network-deployment-ubuntu",
  "bridging-interface-ubuntu",
  "bridging-automatic-ubuntu",
  "authenticate-api",
];

export function versionDocument(version: string): Reply {
  return json({ capabilities: CAPABILITIES, version, subversion: "" });
}

function checkSetting(call: Call, name: string): void {
  const names = settingNames(call.region.version);
  if (names.includes(name)) return;
  // MAAS's error about an unknown name of a setting is the only error whose content type has no character set.
  const refusal = badFields({
    [name]: [`${name} is not a valid config setting (valid settings are: ${names.join(", ")}).`],
  });
  throw Object.assign(refusal, { contentType: "application/json" });
}

export function getConfig(call: Call): Reply {
  const name = call.query.required("name");
  checkSetting(call, name);
  return { ...json(call.region.state.config[name] ?? null), contentType: "application/json" };
}

export function setConfig(call: Call): Reply {
  requireAdmin(call);
  const name = call.form.required("name");
  const value = call.form.get("value") ?? "";
  checkSetting(call, name);
  if (name === "default_distro_series" || name === "commissioning_distro_series") {
    const series = call.region.state.images.map((image) => image.name.split("/")[1] ?? "");
    if (!series.includes(value)) throw badFields({ [name]: [notOneOf(value, "release", series)] });
  }
  const old = call.region.state.config[name];
  call.region.state.config[name] =
    typeof old === "boolean"
      ? value.toLowerCase() === "true" || value === "1"
      : typeof old === "number"
        ? Number(value)
        : value;
  return plain("OK");
}

export function scripts(call: Call): Reply {
  const type = call.query.get("type");
  const filters = call.query.words("filters");
  const shown = SCRIPTS.filter(
    (one) =>
      (type === null || one.type === type) &&
      (filters.length === 0 || filters.some((word) => one.name === word || one.tags.includes(word))),
  );
  return json(
    shown.map((one) => ({
      name: one.name,
      title: one.title,
      description: one.title,
      tags: one.tags,
      hardware_type: { node: 0, cpu: 1, memory: 2, storage: 3, network: 4 }[one.hardware],
      parallel: one.parallel ? 2 : 0,
      results: Object.fromEntries(one.results.map((result) => [result, { title: result, description: result }])),
      parameters: one.parameters,
      packages: one.packages.length === 0 ? {} : { apt: one.packages },
      timeout: one.timeout,
      destructive: one.tags.includes("destructive"),
      default: true,
      for_hardware: [],
      may_reboot: false,
      recommission: false,
      apply_configured_networking: false,
      id: one.id,
      type_name: { commissioning: "Commissioning script", testing: "Testing script", release: "Release script" }[
        one.type
      ],
      type: { commissioning: 0, testing: 2, release: 3 }[one.type],
      parallel_name: one.parallel ? "Run along any other script." : "Disabled",
      hardware_type_name: { node: "Node", cpu: "CPU", memory: "Memory", storage: "Storage", network: "Network" }[
        one.hardware
      ],
      history: [{ id: one.id, comment: "Made with the region", created: "Thu, 01 Jan 2026 00:00:00 +0000" }],
      resource_uri: `${API}/scripts/${one.name}`,
    })),
  );
}

export function commissioningScripts(): Reply {
  return json(
    SCRIPTS.filter((one) => one.type === "commissioning")
      .map((one) => one.name)
      .toSorted(),
  );
}

/** `localeCompare` would look for its locale at each comparison, which took more time than the rest of the answer. */
const byName = new Intl.Collator().compare;

export function images(call: Call): Reply {
  const shown = call.region.state.images
    .toSorted((a, b) => byName(a.name, b.name))
    .map((image) => ({
      id: image.id,
      type: image.name.startsWith("custom/") ? "Uploaded" : "Synced",
      name: image.name,
      architecture: image.architecture,
      resource_uri: `${API}/boot-resources/${image.id}/`,
      last_deployed: modelTime(image.lastDeployed),
      platform: "generic",
      subarches: `generic,${image.architecture.split("/")[1] ?? ""}`,
      supported_platforms: "generic",
    }));
  return json(shown);
}

export function zones(call: Call): Reply {
  return json(call.region.state.zones.map((zone) => viewZone(call.region, zone.name)));
}

export function pools(call: Call): Reply {
  return json(call.region.state.pools.map((pool) => viewPool(call.region, pool.name)));
}

export function readPool(call: Call): Reply {
  const pool = call.region.state.pools.find((one) => String(one.id) === call.params[0]);
  if (pool === undefined) throw notFound("ResourcePool");
  return json(viewPool(call.region, pool.name));
}

export function createPool(call: Call): Reply {
  requireAdmin(call);
  const name = call.data.required("name");
  if (call.region.state.pools.some((pool) => pool.name === name))
    throw badFields({ name: ["Resource pool with this Name already exists."] });
  call.region.state.pools.push({ id: call.region.next("pool"), name, description: call.data.get("description") ?? "" });
  return json(viewPool(call.region, name));
}

export function domains(): Reply {
  return json([DOMAIN]);
}

export function none(): Reply {
  return json([]);
}

/** A fresh region of MAAS 3.7 shows one warning to its administrators. */
export function notifications(call: Call): Reply {
  if (call.region.version === "3.5.12") return json([]);
  return json([
    {
      ident: "simulated",
      user: null,
      users: false,
      admins: true,
      message: "This region is a simulator.",
      context: {},
      category: "warning",
      dismissable: true,
      id: 1,
      resource_uri: `${API}/notifications/1/`,
    },
  ]);
}

function viewTag(tag: {
  name: string;
  definition: string;
  comment: string;
  kernelOpts: string;
}): Record<string, unknown> {
  return {
    name: tag.name,
    definition: tag.definition,
    comment: tag.comment,
    kernel_opts: tag.kernelOpts,
    resource_uri: `${API}/tags/${tag.name}/`,
  };
}

export function tags(call: Call): Reply {
  return json(call.region.state.tags.map(viewTag));
}

export function createTag(call: Call): Reply {
  requireAdmin(call);
  const name = call.data.required("name");
  if (call.region.state.tags.some((tag) => tag.name === name))
    throw badFields({ name: ["Tag with this Name already exists."] });
  const tag = {
    name,
    comment: call.data.get("comment") ?? "",
    definition: call.data.get("definition") ?? "",
    kernelOpts: call.data.get("kernel_opts") ?? "",
  };
  call.region.state.tags.push(tag);
  return json(viewTag(tag));
}

function tagName(call: Call): string {
  const name = call.params[0] ?? "";
  if (!call.region.state.tags.some((tag) => tag.name === name)) throw notFound("Tag");
  return name;
}

export function readTag(call: Call): Reply {
  const name = tagName(call);
  return json(call.region.state.tags.filter((tag) => tag.name === name).map(viewTag)[0] ?? null);
}

export function taggedMachines(call: Call): Reply {
  const name = tagName(call);
  return json(
    call.region.state.machines
      .filter((machine) => machine.tags.includes(name) && mayView(call.user, machine))
      .map((machine) => viewMachine(call.region, machine)),
  );
}

export function updateTagNodes(call: Call): Reply {
  requireAdmin(call);
  const name = tagName(call);
  const added = call.region.state.machines.filter(
    (machine) => call.form.all("add").includes(machine.systemId) && !machine.tags.includes(name),
  );
  for (const machine of added) machine.tags.push(name);
  const removed = call.region.state.machines.filter(
    (machine) => call.form.all("remove").includes(machine.systemId) && machine.tags.includes(name),
  );
  for (const machine of removed) machine.tags = machine.tags.filter((tag) => tag !== name);
  return json({ added: added.length, removed: removed.length });
}
