import { newInterface } from "../../engine/inventory.ts";
import { badFields, notOneOf } from "../../engine/refusal.ts";
import type { Region } from "../../engine/region.ts";
import type { Machine } from "../../state/model.ts";
import { newSystemId } from "../../state/seed.ts";
import { STATUS } from "../../state/statuses.ts";
import type { Fields } from "../call.ts";

const ARCHITECTURES = ["amd64/generic"] as const;
const POWER_TYPES = [
  "amt",
  "apc",
  "dli",
  "eaton",
  "hmc",
  "ipmi",
  "manual",
  "moonshot",
  "mscm",
  "msftocs",
  "nova",
  "openbmc",
  "proxmox",
  "raritan",
  "recs_box",
  "redfish",
  "sm15k",
  "ucsm",
  "vmware",
  "webhook",
  "wedge",
];
const INVALID_CHOICE = "Select a valid choice. That choice is not one of the available choices.";
const REQUIRED = "This field is required.";

type Errors = Record<string, string[]>;

/** The default power parameters by power type, which MAAS stores for parameters that the client's form lacks. */
const POWER_DEFAULTS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  ipmi: {
    power_driver: "LAN_2_0",
    power_boot_type: "auto",
    power_address: "",
    power_user: "",
    power_pass: "",
    k_g: "",
    cipher_suite_id: "3",
    privilege_level: "OPERATOR",
    mac_address: "",
  },
  redfish: { power_address: "", power_user: "", power_pass: "", node_id: "" },
};

function add(errors: Errors, field: string, message: string): void {
  errors[field] = [...(errors[field] ?? []), message];
}

function powerParameters(data: Fields): Record<string, string> {
  const found: Record<string, string> = {};
  const whole = data.get("power_parameters");
  if (whole?.startsWith("{")) {
    for (const [name, value] of Object.entries(JSON.parse(whole) as Record<string, unknown>))
      found[name] = String(value);
  }
  for (const [name, values] of data.entries()) {
    if (name.startsWith("power_parameters_") && name !== "power_parameters_skip_check")
      found[name.slice("power_parameters_".length)] = values.join(",");
  }
  return found;
}

function checkHostname(region: Region, data: Fields, self: Machine | null, errors: Errors): void {
  const hostname = data.get("hostname");
  if (hostname === null || hostname === "") return;
  const host = hostname.split(".")[0] ?? hostname;
  if (host.includes("_")) add(errors, "hostname", `Host label cannot contain underscore: '${host}'.`);
  else if (!/^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/.test(host))
    add(errors, "hostname", `Invalid hostname: Label cannot start or end with hyphen: '${host}'.`);
  else if (region.state.machines.some((machine) => machine !== self && machine.hostname === host))
    add(errors, "hostname", "Node with this Hostname already exists.");
}

function checkMacs(region: Region, macs: readonly string[], errors: Errors): void {
  for (const mac of macs) {
    const holder = region.state.machines.find((machine) => machine.interfaces.some((nic) => nic.macAddress === mac));
    if (holder !== undefined) add(errors, "mac_addresses", `MAC address ${mac} already in use on ${holder.hostname}.`);
    else if (!/^([0-9a-f]{2}:){5}[0-9a-f]{2}$/.test(mac))
      add(errors, "mac_addresses", `'${mac}' is not a valid MAC address.`);
  }
}

function checkChoices(region: Region, data: Fields, errors: Errors): void {
  const zone = data.get("zone");
  if (zone !== null && !region.state.zones.some((one) => one.name === zone)) add(errors, "zone", INVALID_CHOICE);
  const pool = data.get("pool");
  if (pool !== null && !region.state.pools.some((one) => one.name === pool)) add(errors, "pool", INVALID_CHOICE);
  const domain = data.get("domain");
  if (domain !== null && domain !== "maas" && domain !== "0") add(errors, "domain", INVALID_CHOICE);
}

function checkArchitecture(data: Fields, needed: boolean, errors: Errors): void {
  const architecture = data.get("architecture");
  if (architecture === null || architecture === "") {
    if (needed) add(errors, "architecture", REQUIRED);
  } else if (!ARCHITECTURES.some((one) => one === architecture)) {
    add(errors, "architecture", notOneOf(architecture, "architecture", ARCHITECTURES));
  }
}

function checkPower(
  region: Region,
  data: Fields,
  hasInterfaces: boolean,
  stored: Readonly<Record<string, string>>,
  errors: Errors,
): void {
  const powerType = data.get("power_type");
  if (powerType === null || powerType === "") return;
  if (!POWER_TYPES.includes(powerType)) {
    add(errors, "power_type", `Select a valid choice. ${powerType} is not one of the available choices.`);
    return;
  }
  if (powerType !== "ipmi" && !hasInterfaces)
    add(errors, "power_type", `Can't set power type to ${powerType} without network interfaces`);
  if (powerType === "manual") return;
  if (!region.state.rack.connected && !data.flag("power_parameters_skip_check", false))
    add(errors, "power_type", "No rack controllers are connected, unable to validate.");
  const given = { ...stored, ...powerParameters(data) };
  if (!given["power_address"]) add(errors, "power_parameters", REQUIRED);
}

export function machineByForm(region: Region, data: Fields): Machine {
  const errors: Errors = {};
  const powerType = data.get("power_type") ?? "";
  const byBmc = powerType === "ipmi";
  const wanted = data.all("mac_addresses").map((mac) => mac.toLowerCase());
  // MAAS drops the MAC addresses of an `ipmi` machine without an architecture, because commissioning finds the machine's interfaces.
  const macs = byBmc && !data.get("architecture") ? [] : wanted;
  checkArchitecture(data, !byBmc, errors);
  if (macs.length === 0 && !byBmc) add(errors, "mac_addresses", REQUIRED);
  checkMacs(region, macs, errors);
  checkHostname(region, data, null, errors);
  checkPower(region, data, macs.length > 0 && errors["mac_addresses"] === undefined, {}, errors);
  checkChoices(region, data, errors);
  if (Object.keys(errors).length > 0) throw badFields(errors);
  const machine = blankMachine(region);
  applyForm(machine, data);
  machine.interfaces = macs.map((mac, index) => newInterface(region, `eth${index}`, mac));
  machine.bootInterfaceId = machine.interfaces[0]?.id ?? null;
  region.state.machines.push(machine);
  return machine;
}

export function blankMachine(region: Region): Machine {
  const systemId = newSystemId();
  return {
    id: region.next("machine"),
    systemId,
    hostname: `sim-${systemId}`,
    description: "",
    architecture: "",
    minHweKernel: "",
    powerType: "",
    powerParameters: {},
    powerState: "unknown",
    status: STATUS.new,
    previousStatus: STATUS.new,
    owner: null,
    agentName: "",
    locked: false,
    errorDescription: "",
    osystem: "",
    distroSeries: "",
    hweKernel: null,
    ephemeralDeploy: false,
    enableKernelCrashDump: false,
    enableHwSync: false,
    lastSync: null,
    syncInterval: null,
    userData: null,
    token: null,
    pool: "default",
    zone: "default",
    tags: [],
    ownerData: {},
    cpuCount: 0,
    cores: [],
    memory: 0,
    swapSize: null,
    interfaces: [],
    bootInterfaceId: null,
    blockDevices: [],
    bootDiskId: null,
    volumeGroupIds: [],
    ownedStorage: false,
    scriptSets: { commissioning: null, testing: null, installation: null, release: null },
    pastScriptSets: [],
    hardwareUuid: null,
    hardwareInfo: {},
    biosBootMethod: null,
    hardwareId: null,
    skipNetworking: false,
    skipStorage: false,
    deployedAt: null,
    statusMessage: null,
    statusAction: null,
  };
}

function applyPower(machine: Machine, data: Fields): void {
  const powerType = data.get("power_type");
  const given = powerParameters(data);
  if (powerType === null && Object.keys(given).length === 0) return;
  const changed = powerType !== null && powerType !== machine.powerType;
  if (powerType !== null) machine.powerType = powerType;
  machine.powerParameters = {
    ...(POWER_DEFAULTS[machine.powerType] ?? {}),
    ...(changed ? {} : machine.powerParameters),
    ...given,
  };
}

function applyForm(machine: Machine, data: Fields): void {
  const hostname = data.get("hostname");
  if (hostname) machine.hostname = hostname.split(".")[0] ?? hostname;
  machine.description = data.get("description") ?? machine.description;
  machine.architecture = data.get("architecture") ?? machine.architecture;
  machine.minHweKernel = data.get("min_hwe_kernel") ?? machine.minHweKernel ?? "";
  machine.pool = data.get("pool") ?? machine.pool;
  machine.zone = data.get("zone") ?? machine.zone;
  applyPower(machine, data);
}

/** As in MAAS, unknown field names in the client's form have no effect. */
export function updateByForm(region: Region, machine: Machine, data: Fields): void {
  const errors: Errors = {};
  checkArchitecture(data, false, errors);
  checkHostname(region, data, machine, errors);
  const sameType = data.get("power_type") === machine.powerType;
  checkPower(region, data, machine.interfaces.length > 0, sameType ? machine.powerParameters : {}, errors);
  checkChoices(region, data, errors);
  if (Object.keys(errors).length > 0) throw badFields(errors);
  applyForm(machine, data);
}
