import type { BlockDevice, Filesystem, Machine, Partition } from "../state/model.ts";
import { showsOwnedStorage } from "../state/statuses.ts";

const API = "/MAAS/api/2.0";
const TABLE_BYTES = 6_119_424;
const PARTITION_TABLE_BYTES = 5_242_880;

/**
 * True if MAAS's answers hide the filesystems of a machine. When MAAS allocates a machine to an owner, MAAS copies the records of the machine's
 * filesystems. While a machine has an owner, MAAS shows only the copied records of its filesystems. MAAS shows no filesystem of a machine that has an
 * owner but no copied records.
 */
function hidesFilesystems(machine: Machine): boolean {
  return showsOwnedStorage(machine.status) && !machine.ownedStorage;
}

function viewFilesystem(fs: Filesystem | null, hidden: boolean): Record<string, unknown> | null {
  if (fs === null || hidden) return null;
  return { fstype: fs.fstype, label: fs.label, uuid: fs.uuid, mount_point: fs.mountPoint, mount_options: null };
}

function viewPartition(
  machine: Machine,
  device: BlockDevice,
  partition: Partition,
  index: number,
  hidden: boolean,
): Record<string, unknown> {
  return {
    uuid: partition.uuid,
    size: partition.size,
    bootable: partition.bootable,
    tags: [],
    device_id: device.id,
    id: partition.id,
    filesystem: viewFilesystem(partition.filesystem, hidden),
    used_for: hidden ? "Unused" : partition.usedFor,
    system_id: machine.systemId,
    path: `/dev/disk/by-dname/${device.name}-part${index + 1}`,
    type: "partition",
    resource_uri: `${API}/nodes/${machine.systemId}/blockdevices/${device.id}/partition/${partition.id}`,
  };
}

function usedBytes(device: BlockDevice): number {
  if (device.filesystem !== null) return device.size;
  if (device.partitions.length === 0) return 0;
  return device.partitions.reduce((sum, partition) => sum + partition.size, 0) + PARTITION_TABLE_BYTES;
}

export function viewPartitions(
  machine: Machine,
  device: BlockDevice,
  hidden = hidesFilesystems(machine),
): Record<string, unknown>[] {
  return device.partitions.map((partition, index) => viewPartition(machine, device, partition, index, hidden));
}

export function viewBlockDevice(
  machine: Machine,
  device: BlockDevice,
  hidden = hidesFilesystems(machine),
): Record<string, unknown> {
  const used = usedBytes(device);
  const overhead = device.kind === "physical" && used === 0 ? TABLE_BYTES : 0;
  return {
    ...(device.kind === "physical" ? { firmware_version: device.firmwareVersion } : {}),
    id: device.id,
    uuid: device.uuid,
    used_for: device.usedFor,
    block_size: device.blockSize,
    partitions: viewPartitions(machine, device, hidden),
    available_size: Math.max(0, device.size - used - overhead),
    filesystem: viewFilesystem(device.filesystem, hidden),
    name: device.name,
    path: `/dev/disk/by-dname/${device.name}`,
    type: device.kind,
    numa_node: device.numaNode,
    used_size: used,
    model: device.model,
    id_path: device.idPath,
    storage_pool: null,
    partition_table_type: device.partitionTable,
    serial: device.serial,
    system_id: machine.systemId,
    size: device.size,
    tags: device.tags,
    resource_uri: `${API}/nodes/${machine.systemId}/blockdevices/${device.id}/`,
  };
}
