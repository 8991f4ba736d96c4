import type { Region } from "../engine/region.ts";
import { bootDiskOf, physicalDisks } from "../engine/storage.ts";
import type { Machine, ScriptSet } from "../state/model.ts";
import type { Status } from "../state/statuses.ts";
import { STATUS_LABEL, showsOwnedStorage } from "../state/statuses.ts";
import { viewInterface } from "./network.ts";
import { viewBlockDevice } from "./storage.ts";

export const API = "/MAAS/api/2.0";

export const DOMAIN = {
  authoritative: true,
  ttl: null,
  id: 0,
  is_default: true,
  name: "maas",
  resource_record_count: 0,
  resource_uri: `${API}/domains/0/`,
} as const;

const HARDWARE_INFO = [
  "system_vendor",
  "system_product",
  "system_family",
  "system_version",
  "system_sku",
  "system_serial",
  "cpu_model",
  "mainboard_vendor",
  "mainboard_product",
  "mainboard_serial",
  "mainboard_version",
  "mainboard_firmware_vendor",
  "mainboard_firmware_date",
  "mainboard_firmware_version",
  "chassis_vendor",
  "chassis_type",
  "chassis_serial",
  "chassis_version",
] as const;

export const SCRIPT_STATUS_LABEL: Readonly<Record<number, string>> = {
  [-1]: "Unknown",
  0: "Pending",
  1: "Running",
  2: "Passed",
  3: "Failed",
  5: "Aborted",
};

/**
 * Returns the fields `<prefix>_status` and `<prefix>_status_name` of a script set. If `set` is null, the field `<prefix>_status` of the answer is -1.
 */
function statusPair(prefix: string, set: ScriptSet | null): Record<string, unknown> {
  const status = set?.status ?? -1;
  return { [`${prefix}_status`]: status, [`${prefix}_status_name`]: SCRIPT_STATUS_LABEL[status] };
}

export function viewScriptStatuses(sets: Machine["scriptSets"]): Record<string, unknown> {
  const storage =
    sets.testing?.results.some((result) => result.name.startsWith("smartctl")) === true ? sets.testing : null;
  return {
    current_commissioning_result_id: sets.commissioning?.id ?? null,
    current_testing_result_id: sets.testing?.id ?? null,
    current_installation_result_id: sets.installation?.id ?? null,
    ...statusPair("commissioning", sets.commissioning),
    ...statusPair("testing", sets.testing),
    ...statusPair("storage_test", storage),
    ...statusPair("cpu_test", null),
    ...statusPair("memory_test", null),
    ...statusPair("network_test", null),
    ...statusPair("interface_test", null),
    ...statusPair("other_test", null),
  };
}

export function viewHardwareInfo(info: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(HARDWARE_INFO.map((name) => [name, info[name] ?? "Unknown"]));
}

export function viewZone(region: Region, name: string): Record<string, unknown> | null {
  const zone = region.state.zones.find((one) => one.name === name);
  return zone === undefined
    ? null
    : { name: zone.name, description: zone.description, id: zone.id, resource_uri: `${API}/zones/${zone.name}/` };
}

export function viewPool(region: Region, name: string): Record<string, unknown> | null {
  const pool = region.state.pools.find((one) => one.name === name);
  return pool === undefined
    ? null
    : { name: pool.name, description: pool.description, id: pool.id, resource_uri: `${API}/resourcepool/${pool.id}/` };
}

/** Formats a time as MAAS shows it in most objects, in ISO format with milliseconds and without a zone. */
export function modelTime(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString().slice(0, -1);
}

function viewStorage(machine: Machine): Record<string, unknown> {
  const boot = bootDiskOf(machine);
  const physical = physicalDisks(machine).map((device) => viewBlockDevice(machine, device));
  const virtual = machine.blockDevices
    .filter((device) => device.kind === "virtual")
    .map((device) => viewBlockDevice(machine, device));
  return {
    blockdevice_set: [...physical, ...virtual],
    physicalblockdevice_set: physical,
    virtualblockdevice_set: virtual,
    boot_disk: boot === null ? null : viewBlockDevice(machine, boot),
    volume_groups: machine.volumeGroupIds.map((id) => ({ system_id: machine.systemId, id, __incomplete__: true })),
    raids: [],
    bcaches: [],
    cache_sets: [],
    special_filesystems: [],
    storage: physicalDisks(machine).reduce((sum, device) => sum + device.size, 0) / 1_000_000,
    swap_size: machine.swapSize,
  };
}

function viewNetwork(region: Region, machine: Machine): Record<string, unknown> {
  const interfaces = machine.interfaces.map((nic) => viewInterface(region, machine.systemId, nic));
  const boot = machine.interfaces.findIndex((nic) => nic.id === machine.bootInterfaceId);
  // As in MAAS, a machine's links to subnets are in the order in which their interfaces were created. The order of a machine's links does not show
  // which interface is the boot interface.
  const links = machine.interfaces.toSorted((a, b) => a.id - b.id).flatMap((nic) => nic.links);
  const gateway = links
    .map((link) => region.state.subnets.find((subnet) => subnet.id === link.subnetId)?.gatewayIp ?? null)
    .find((ip) => ip !== null);
  return {
    ip_addresses: links.flatMap((link) => link.ipAddress ?? []),
    interface_set: interfaces,
    boot_interface: interfaces[boot] ?? null,
    default_gateways: {
      ipv4: { gateway_ip: gateway ?? null, link_id: null },
      ipv6: { gateway_ip: null, link_id: null },
    },
    address_ttl: null,
    disable_ipv4: false,
  };
}

function viewSync(machine: Machine): Record<string, unknown> {
  const next =
    machine.lastSync === null || machine.syncInterval === null ? null : machine.lastSync + machine.syncInterval * 1000;
  return {
    enable_hw_sync: machine.enableHwSync,
    last_sync: modelTime(machine.lastSync),
    next_sync: modelTime(next),
    sync_interval: machine.syncInterval,
  };
}

/** The facts about a machine that an operation reads before it changes the machine. */
export interface Before {
  status: Status;
  installationId: number | null;
  network: Record<string, unknown>;
}

export function readBefore(region: Region, machine: Machine): Before {
  return {
    status: machine.status,
    installationId: machine.scriptSets.installation?.id ?? null,
    network: viewNetwork(region, machine),
  };
}

/**
 * Returns MAAS's answer to an operation that changes a machine. In MAAS's answer to an operation, `boot_disk` shows the machine as it was before the
 * operation. In MAAS's answer to a deploy or release, the network fields show the machine's old state.
 */
export function viewMachineAfter(
  region: Region,
  machine: Machine,
  before: Before,
  network: "stale" | "fresh",
): Record<string, unknown> {
  const boot = bootDiskOf(machine);
  const bootDiskHidden = showsOwnedStorage(before.status) && !machine.ownedStorage;
  return {
    ...viewMachine(region, machine),
    boot_disk: boot === null ? null : viewBlockDevice(machine, boot, bootDiskHidden),
    ...(network === "stale" ? before.network : {}),
  };
}

export function viewMachine(region: Region, machine: Machine): Record<string, unknown> {
  return {
    system_id: machine.systemId,
    hostname: machine.hostname,
    fqdn: `${machine.hostname}.${DOMAIN.name}`,
    domain: DOMAIN,
    description: machine.description,
    node_type: 0,
    node_type_name: "Machine",
    status: machine.status,
    status_name: STATUS_LABEL[machine.status],
    status_message: machine.statusMessage,
    status_action: machine.statusAction,
    error_description: machine.errorDescription,
    power_type: machine.powerType,
    power_state: machine.powerState,
    owner: machine.owner,
    owner_data: machine.ownerData,
    workload_annotations: machine.ownerData,
    locked: machine.locked,
    architecture: machine.architecture,
    osystem: machine.osystem,
    distro_series: machine.distroSeries,
    min_hwe_kernel: machine.minHweKernel,
    hwe_kernel: machine.hweKernel,
    netboot: true,
    ephemeral_deploy: machine.ephemeralDeploy,
    cpu_count: machine.cpuCount,
    cpu_speed: 0,
    memory: machine.memory,
    hardware_uuid: machine.hardwareUuid,
    hardware_info: viewHardwareInfo(machine.hardwareInfo),
    bios_boot_method: machine.biosBootMethod,
    tag_names: machine.tags,
    pool: viewPool(region, machine.pool),
    zone: viewZone(region, machine.zone),
    parent: null,
    pod: null,
    virtualmachine_id: null,
    numanode_set: [{ index: 0, memory: machine.memory, cores: machine.cores, hugepages_set: [] }],
    ...viewScriptStatuses(machine.scriptSets),
    ...viewSync(machine),
    ...viewNetwork(region, machine),
    ...viewStorage(machine),
    ...(region.version === "3.7.3" ? { is_dpu: false, enable_kernel_crash_dump: machine.enableKernelCrashDump } : {}),
    resource_uri: `${API}/machines/${machine.systemId}/`,
  };
}
