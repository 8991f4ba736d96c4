import type { Hardware, Machine, NetworkInterface } from "../state/model.ts";
import { clearLinks, linkDiscovered } from "./links.ts";
import type { Region } from "./region.ts";
import { applyLayout, diskRecord, physicalDisks } from "./storage.ts";

export function newInterface(region: Region, name: string, macAddress: string): NetworkInterface {
  return {
    id: region.next("interface"),
    name,
    macAddress,
    vlanId: null,
    links: [],
    params: {},
    vendor: null,
    product: null,
    firmwareVersion: null,
    linkSpeed: 0,
    interfaceSpeed: 0,
    numaNode: 0,
    sriovMaxVf: 0,
    mtu: 1500,
    tags: [],
    discovered: null,
  };
}

function learnInterfaces(region: Region, machine: Machine, box: Hardware): void {
  for (const nic of box.nics) {
    let known = machine.interfaces.find((one) => one.macAddress === nic.mac);
    if (known === undefined) {
      known = newInterface(region, nic.name, nic.mac);
      machine.interfaces.push(known);
    }
    known.name = nic.name;
    known.vlanId = nic.vlanId;
    known.vendor = nic.vendor;
    known.product = nic.product;
    known.linkSpeed = nic.linkSpeed;
    known.interfaceSpeed = nic.linkSpeed;
    if (nic.pxe) machine.bootInterfaceId = known.id;
  }
  machine.bootInterfaceId ??= machine.interfaces[0]?.id ?? null;
}

function learnDisks(region: Region, machine: Machine, box: Hardware): void {
  for (const disk of box.disks) {
    const known = physicalDisks(machine).find((one) => one.serial === disk.serial);
    if (known === undefined)
      machine.blockDevices.push(diskRecord(region, disk, `/dev/disk/by-id/${box.id}-${disk.name}`));
    else known.name = disk.name;
  }
}

/**
 * A commissioning run recognizes interfaces by MAC address and disks by serial number, so that each interface and disk keeps its id. A commissioning
 * run replaces the subnet links of the machine's interfaces, unless its request sets `skip_networking`. A commissioning run replaces the machine's
 * storage layout, unless its request sets `skip_storage`.
 */
export function learnHardware(region: Region, machine: Machine): void {
  const box = region.hardwareOf(machine);
  if (box === undefined) return;
  machine.hardwareId = box.id;
  machine.cpuCount = box.cpuCount;
  machine.cores = Array.from({ length: box.cores }, (_, core) => core);
  machine.memory = box.memoryMib;
  machine.hardwareUuid = box.uuid;
  machine.hardwareInfo = { ...box.info };
  machine.biosBootMethod = "uefi";
  if (machine.architecture === "") machine.architecture = "amd64/generic";
  learnInterfaces(region, machine, box);
  learnDisks(region, machine, box);
  const linked = machine.interfaces.some((one) => one.links.length > 0);
  if (!machine.skipNetworking || !linked) {
    clearLinks(machine);
    linkDiscovered(region, machine);
  }
  const laidOut = machine.blockDevices.some((device) => device.partitions.length > 0);
  if ((!machine.skipStorage || !laidOut) && physicalDisks(machine).length > 0)
    applyLayout(region, machine, { layout: "flat", rootDevice: null, rootSize: null });
}
