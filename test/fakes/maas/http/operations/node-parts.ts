import { linkSubnet, requireNetworkWrite, unlinkSubnet } from "../../engine/links.ts";
import { badFields, notFound, stateConflict } from "../../engine/refusal.ts";
import { SCRIPTS } from "../../engine/scripts.ts";
import { applyLayout, physicalDisks } from "../../engine/storage.ts";
import type { BlockDevice, Machine, NetworkInterface, ScriptResult, ScriptSet } from "../../state/model.ts";
import { SCRIPT_STATUS } from "../../state/model.ts";
import { allows, STATUS } from "../../state/statuses.ts";
import { API, SCRIPT_STATUS_LABEL, viewMachine } from "../../view/machine.ts";
import { viewInterface } from "../../view/network.ts";
import { viewBlockDevice, viewPartitions } from "../../view/storage.ts";
import type { Call, Reply } from "../call.ts";
import { json, plain } from "../call.ts";
import { administered, viewable } from "./access.ts";

function deviceOf(machine: Machine, id: string | undefined): BlockDevice {
  const device = machine.blockDevices.find((one) => String(one.id) === id || one.name === id);
  if (device === undefined) throw notFound("BlockDevice");
  return device;
}

function interfaceOf(machine: Machine, id: string | undefined): NetworkInterface {
  const nic = machine.interfaces.find((one) => String(one.id) === id || one.name === id);
  if (nic === undefined) throw notFound("Interface");
  return nic;
}

export function blockDevices(call: Call): Reply {
  const machine = viewable(call);
  const all = machine.blockDevices.map((device) => {
    // MAAS shows a disk's firmware version in the answer about the single disk, but not in the list of block devices.
    const { firmware_version: _, ...shown } = viewBlockDevice(machine, device);
    return shown;
  });
  return json(all);
}

export function blockDevice(call: Call): Reply {
  const machine = viewable(call);
  return json(viewBlockDevice(machine, deviceOf(machine, call.params[1])));
}

export function partitions(call: Call): Reply {
  const machine = viewable(call);
  return json(viewPartitions(machine, deviceOf(machine, call.params[1])));
}

export function setBootDisk(call: Call): Reply {
  const machine = administered(call);
  const device = deviceOf(machine, call.params[1]);
  if (!allows("storageWrite", machine.status))
    throw stateConflict("Cannot set as boot disk because the machine is not Ready.");
  if (!physicalDisks(machine).includes(device))
    throw badFields({ __all__: ["Cannot set a virtual block device as the boot disk."] });
  machine.bootDiskId = device.id;
  return plain("OK");
}

export function setStorageLayout(call: Call): Reply {
  const machine = administered(call);
  if (!allows("storageWrite", machine.status))
    throw stateConflict("Cannot change the storage layout on a machine that is not Ready.");
  applyLayout(call.region, machine, {
    layout: call.form.get("storage_layout"),
    rootDevice: call.form.get("root_device"),
    rootSize: call.form.get("root_size"),
  });
  return json(viewMachine(call.region, machine));
}

export function interfaces(call: Call): Reply {
  const machine = viewable(call);
  return json(machine.interfaces.map((nic) => viewInterface(call.region, machine.systemId, nic)));
}

export function readInterface(call: Call): Reply {
  const machine = viewable(call);
  return json(viewInterface(call.region, machine.systemId, interfaceOf(machine, call.params[1])));
}

/** When an interface moves to another VLAN, the interface loses its links, which belong to the old VLAN. */
function moveToVlan(nic: NetworkInterface, vlanId: number | null): void {
  if (nic.vlanId !== vlanId) nic.links = [];
  nic.vlanId = vlanId;
}

export function updateInterface(call: Call): Reply {
  const machine = administered(call);
  const nic = interfaceOf(machine, call.params[1]);
  if (!allows("networkWrite", machine.status) && machine.status !== STATUS.deployed) {
    throw stateConflict("Cannot update interface because the machine is not New, Ready, Allocated, or Broken.");
  }
  const vlan = call.data.get("vlan");
  if (vlan !== null && vlan !== "" && !call.region.state.vlans.some((one) => String(one.id) === vlan)) {
    throw badFields({ vlan: ["Select a valid choice. That choice is not one of the available choices."] });
  }
  if (vlan !== null) moveToVlan(nic, vlan === "" ? null : Number(vlan));
  nic.name = call.data.get("name") || nic.name;
  nic.macAddress = call.data.get("mac_address")?.toLowerCase() || nic.macAddress;
  const mtu = call.data.get("mtu");
  if (mtu) nic.mtu = Number(mtu);
  if (call.data.has("tags")) nic.tags = call.data.words("tags");
  return json(viewInterface(call.region, machine.systemId, nic));
}

function writableInterface(call: Call): { machine: Machine; nic: NetworkInterface } {
  const machine = administered(call);
  const nic = interfaceOf(machine, call.params[1]);
  requireNetworkWrite(machine);
  return { machine, nic };
}

export function link(call: Call): Reply {
  const { machine, nic } = writableInterface(call);
  linkSubnet(call.region, nic, {
    mode: call.form.get("mode"),
    subnet: call.form.get("subnet"),
    ipAddress: call.form.get("ip_address"),
    force: call.form.flag("force", false),
  });
  return json(viewInterface(call.region, machine.systemId, nic));
}

export function unlink(call: Call): Reply {
  const { machine, nic } = writableInterface(call);
  unlinkSubnet(call.region, nic, call.form.get("id"));
  return json(viewInterface(call.region, machine.systemId, nic));
}

export function disconnect(call: Call): Reply {
  const { machine, nic } = writableInterface(call);
  nic.links = [];
  nic.vlanId = null;
  return json(viewInterface(call.region, machine.systemId, nic));
}

const RESULT_TYPES = {
  commissioning: { code: 0, label: "Commissioning" },
  testing: { code: 2, label: "Testing" },
  installation: { code: 1, label: "Installation" },
  release: { code: 3, label: "Release" },
} as const;

function scriptTime(ms: number): string {
  return new Date(ms).toUTCString().replace("GMT", "+0000");
}

/** The default values of the parameters of MAAS's scripts. A script result of MAAS lists only parameters that have a value. */
const RUN_VALUES: Readonly<Record<string, string>> = {
  maas_auto_ipmi_user: "maas",
  maas_auto_ipmi_cipher_suite_id: "3",
  maas_auto_ipmi_user_privilege_level: "ADMIN",
  storage: "all",
};

function withValues(parameters: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(parameters).flatMap(([name, one]) => {
      if (typeof one === "object" && one !== null && "value" in one) return [[name, one]];
      if (RUN_VALUES[name] === undefined) return [];
      return [[name, typeof one === "object" ? { ...one, value: RUN_VALUES[name] } : one]];
    }),
  );
}

function outputOf({ output = "" }: ScriptResult): Record<string, string> {
  const text = Buffer.from(output).toString("base64");
  return { output: text, stdout: text, stderr: "", result: "" };
}

function viewScriptSet(machine: Machine, set: ScriptSet, withOutput: boolean): Record<string, unknown> {
  const type = RESULT_TYPES[set.kind];
  const ends = set.results.map((result) => result.ended).filter((ended) => ended !== null);
  const lastEnd = ends.length < set.results.length ? null : Math.max(...ends);
  return {
    id: set.id,
    system_id: machine.systemId,
    type: type.code,
    type_name: type.label,
    status: set.status,
    status_name: SCRIPT_STATUS_LABEL[set.status],
    started: lastEnd === null ? null : scriptTime(lastEnd),
    ended: lastEnd === null ? null : scriptTime(lastEnd),
    runtime: "",
    last_ping: null,
    results: set.results.map((result) => ({
      id: result.id,
      created: scriptTime(result.created),
      updated: scriptTime(result.updated),
      name: result.name,
      status: result.status,
      status_name: SCRIPT_STATUS_LABEL[result.status],
      exit_status: result.status === SCRIPT_STATUS.passed ? 0 : result.status === SCRIPT_STATUS.failed ? 1 : null,
      started: result.ended === null ? null : scriptTime(result.ended),
      ended: result.ended === null ? null : scriptTime(result.ended),
      runtime: result.ended === null ? "" : "0:00:00",
      starttime: result.ended === null ? "" : result.ended / 1000,
      endtime: result.ended === null ? "" : result.ended / 1000,
      estimated_runtime: "0:00:00",
      parameters: withValues(result.parameters),
      script_id: SCRIPTS.find((one) => one.name === result.name)?.id ?? null,
      script_revision_id: null,
      suppressed: false,
      ...(withOutput ? outputOf(result) : {}),
    })),
    resource_uri: `${API}/nodes/${machine.systemId}/results/${set.id}/`,
  };
}

export function results(call: Call): Reply {
  const machine = viewable(call);
  const type = call.query.get("type");
  const sets = [...machine.pastScriptSets, ...Object.values(machine.scriptSets).filter((set) => set !== null)];
  const filters = call.query.get("filters")?.split(",");
  const wanted = sets
    .filter((set) => type === null || set.kind === type)
    .map((set) => ({ ...set, results: set.results.filter(({ name }) => filters?.includes(name) ?? true) }))
    .toSorted((a, b) => RESULT_TYPES[a.kind].code - RESULT_TYPES[b.kind].code || a.id - b.id);
  return json(wanted.map((set) => viewScriptSet(machine, set, call.query.get("include_output") !== null)));
}
