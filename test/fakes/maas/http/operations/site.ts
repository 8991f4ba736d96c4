import { badFields, notFound, notOneOf } from "../../engine/refusal.ts";
import { SCRIPTS } from "../../engine/scripts.ts";
import { settingNames } from "../../state/config-settings.ts";
import { newKey } from "../../state/seed.ts";
import {
  API,
  DOMAIN,
  modelTime,
  viewHardwareInfo,
  viewMachine,
  viewPool,
  viewScriptStatuses,
  viewZone,
} from "../../view/machine.ts";
import { viewInterface } from "../../view/network.ts";
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
const NO_SCRIPTS = { commissioning: null, testing: null, installation: null } as const;

export function versionDocument(version: string): Reply {
  return json({ capabilities: CAPABILITIES, version, subversion: "" });
}

function checkSetting(call: Call, name: string): void {
  const names = settingNames(call.region.version);
  if (names.includes(name)) return;
  // This refusal alone names its type without a character set.
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

export function images(call: Call): Reply {
  const shown = call.region.state.images
    .toSorted((a, b) => a.name.localeCompare(b.name))
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

function controller(
  call: Call,
  kind: { systemId: string; hostname: string; type: 2 | 3; label: string; uri: string; uuid: string | null },
): Record<string, unknown> {
  const { region } = call;
  return {
    system_id: kind.systemId,
    hostname: kind.hostname,
    fqdn: `${kind.hostname}.maas`,
    domain: DOMAIN,
    description: "",
    node_type: kind.type,
    node_type_name: kind.label,
    hardware_uuid: kind.uuid,
    hardware_info: viewHardwareInfo({}),
    architecture: kind.type === 2 ? "amd64/generic" : null,
    osystem: "",
    distro_series: "",
    memory: 0,
    cpu_count: 0,
    cpu_speed: 0,
    swap_size: null,
    power_type: "",
    power_state: "unknown",
    status_action: null,
    interface_set: kind.type === 2 ? [viewInterface(region, kind.systemId, region.state.rack.nic)] : [],
    zone: viewZone(region, "default"),
    version: kind.type === 2 ? region.state.rack.version : region.version,
    tag_names: [],
    ...viewScriptStatuses(
      kind.type === 3
        ? { ...NO_SCRIPTS, commissioning: { id: 1, kind: "commissioning", status: 0, results: [] } }
        : NO_SCRIPTS,
    ),
    resource_uri: `${API}/${kind.uri}/${kind.systemId}/`,
  };
}

const RACK_SERVICES = ["syslog_rack", "proxy_rack", "rackd", "tftp", "ntp_rack", "dhcpd6", "dhcpd", "agent", "http"];

function rack(call: Call): Record<string, unknown> {
  const { rack: one } = call.region.state;
  const status = one.connected ? "running" : "dead";
  return {
    ...controller(call, { ...one, type: 2, label: "Rack controller", uri: "rackcontrollers" }),
    service_set: RACK_SERVICES.map((name) => ({ name, status, status_info: "" })),
  };
}

function regionController(call: Call): Record<string, unknown> {
  return controller(call, {
    ...call.region.state.region,
    type: 3,
    label: "Region controller",
    uri: "regioncontrollers",
    uuid: null,
  });
}

export function racks(call: Call): Reply {
  return json([rack(call)]);
}

export function regions(call: Call): Reply {
  return json([regionController(call)]);
}

export function nodes(call: Call): Reply {
  const machines = call.region.state.machines
    .filter((machine) => mayView(call.user, machine))
    .toSorted((a, b) => a.id - b.id);
  return json([...machines.map((machine) => viewMachine(call.region, machine)), rack(call), regionController(call)]);
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

/** From 3.7 a fresh region warns of what it will drop. */
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

function viewUser(user: Call["user"]): Record<string, unknown> {
  return {
    is_superuser: user.isSuperuser,
    username: user.username,
    email: user.email,
    is_local: true,
    resource_uri: `${API}/users/${user.username}/`,
  };
}

export function whoami(call: Call): Reply {
  return json(viewUser(call.user));
}

export function users(call: Call): Reply {
  return json(call.region.state.users.map(viewUser));
}

export function createUser(call: Call): Reply {
  requireAdmin(call);
  const username = call.data.required("username");
  if (call.region.state.users.some((user) => user.username === username))
    throw badFields({ username: ["A user with that username already exists."] });
  const user = {
    username,
    email: call.data.required("email"),
    isSuperuser: call.data.flag("is_superuser", false),
    tokens: [],
    sshKeys: [],
  };
  call.region.state.users.push(user);
  return json(viewUser(user));
}

export function createToken(call: Call): Reply {
  const token = {
    token_key: newKey(18),
    token_secret: newKey(32),
    consumer_key: newKey(18),
    name: call.form.get("name") || "MAAS consumer",
  };
  call.user.tokens.push(token);
  return json(token);
}

export function listTokens(call: Call): Reply {
  return json(
    call.user.tokens.map((token) => ({
      name: token.name,
      token: `${token.consumer_key}:${token.token_key}:${token.token_secret}`,
    })),
  );
}

export function deleteToken(call: Call): Reply {
  const key = call.form.required("token_key");
  call.user.tokens = call.user.tokens.filter((token) => token.token_key !== key);
  return { status: 204, body: "", contentType: "text/plain" };
}

export function sshKeys(call: Call): Reply {
  return json(call.user.sshKeys.map((key) => ({ key: key.key, id: key.id })));
}

export function addSshKey(call: Call): Reply {
  const key = { id: call.region.next("sshkey"), key: call.data.required("key") };
  call.user.sshKeys.push(key);
  const source = call.region.version === "3.5.12" ? { keysource: null } : {};
  return json({ key: key.key, id: key.id, ...source }, 201);
}
