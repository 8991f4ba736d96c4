import type { MachineStatus } from "../../shared/api/instances.ts";
import { Inventory } from "../../shared/inventory.ts";
import { isReadInFull } from "../../shared/machine-details.ts";
import type { MachineRecords, UseOfNode } from "../db/queries/machine-pages.ts";
import type { NodeRow } from "../db/queries/node-reads.ts";
import type { MaasMachineRow } from "../db/schema/index.ts";
import { historyOf } from "../node/machine-history.ts";
import { machineStatusOf } from "../node/machine-status.ts";
import { powerIntentOf } from "../node/power-intent.ts";
import type { StatusEntry } from "../node/status-history.ts";
import { capability } from "./capability.ts";
import { type MachineHealth, machineHealthOf, preventsAllocations } from "./machine-health.ts";
import { stableId } from "./stable-id.ts";

/** NICo's lists show the newest entries of a machine's history; the whole history has a route of its own. */
const ENTRIES_SHOWN = 20;

export const toStatusDetail = ({ status, message, at }: StatusEntry) => ({
  status,
  message,
  created: at.toISOString(),
  updated: at.toISOString(),
});

const hasPersonsCordon = ({ cordonOwner }: NodeRow["node"]): boolean => cordonOwner?.startsWith("operator:") === true;

const isOpen = (use: UseOfNode): boolean => use.endedAt === null;

function statusOf(
  { node, power }: NodeRow,
  { cleanings }: MachineRecords,
  { use, health }: { readonly use: UseOfNode | undefined; readonly health: MachineHealth },
): MachineStatus {
  const cleaning = cleanings.some((one) => one.nodeId === node.id && one.endedAt === null);
  return machineStatusOf({
    node: node.status,
    use: use === undefined ? "none" : use.endingAt === null ? "open" : "ending",
    cleaning,
    unhealthy: preventsAllocations(health),
    awayByRequest: powerIntentOf(power ?? undefined, node, node.lastAgentContactAt) !== null,
    cordoned: hasPersonsCordon(node),
  });
}

/** The parts of the host that its agent has seen. The listed GPUs are those that the host has, not those that its SKU promises. */
function capabilitiesOf(inventory: Inventory) {
  const gpus = new Map<string, number>();
  for (const { model } of inventory.gpus) gpus.set(model, (gpus.get(model) ?? 0) + 1);
  return [
    capability({ type: "CPU", name: inventory.cpu.model, cores: inventory.cpu.cores, count: inventory.cpu.sockets }),
    capability({ type: "Memory", capacity: `${inventory.memory_bytes} B`, count: 1 }),
    ...inventory.disks.map(({ model, bytes }) =>
      capability({ type: "Storage", name: model, capacity: `${bytes} B`, count: 1 }),
    ),
    ...inventory.interfaces.map(({ name }) => capability({ type: "Network", name, count: 1 })),
    ...[...gpus].map(([name, count]) => capability({ type: "GPU", name, count })),
  ];
}

function interfacesOf(machine: MaasMachineRow) {
  const names = [...new Set(machine.interfaceAddresses.map((one) => one.interface))];
  return names.map((name) => {
    const mine = machine.interfaceAddresses.filter((one) => one.interface === name);
    return { name, isPrimary: mine.some(({ boots }) => boots), ipAddresses: mine.map(({ address }) => address) };
  });
}

function metadataOf(inventory: Inventory | null, machine: MaasMachineRow | undefined) {
  const details = machine !== undefined && isReadInFull(machine.details) ? machine.details : null;
  return {
    dmiData: {
      sysVendor: inventory?.system.manufacturer ?? null,
      productName: inventory?.system.model ?? null,
      productSerial: details?.serial ?? null,
      boardSerial: details?.board_serial ?? null,
      chassisSerial: details?.chassis_serial ?? null,
      biosVersion: details?.firmware_version ?? null,
    },
    gpus: (inventory?.gpus ?? []).map(({ model, bus, memory_bytes, serial }) => ({
      name: model,
      serial: serial ?? null,
      totalMemory: memory_bytes === null ? null : `${memory_bytes} B`,
      pciBusId: bus,
    })),
    networkInterfaces: (inventory?.interfaces ?? []).map(({ name, mac }) => ({ name, macAddress: mac })),
    infinibandInterfaces: [],
  };
}

/** Translates a node into NICo's Machine. A value that Muster does not know is null, never a guess. */
export function toMachine(row: NodeRow, records: MachineRecords, withMetadata: boolean) {
  const { node } = row;
  const use = records.uses.find((one) => one.nodeId === node.id && isOpen(one));
  const machine = records.machines.get(node.id);
  const inventory = Inventory.safeParse(records.inventories.get(node.id)?.inventory).data ?? null;
  const health = machineHealthOf(row);
  const status = statusOf(row, records, { use, health });
  const history = historyOf(node.id, records);
  return {
    id: node.id,
    siteId: node.siteId,
    infrastructureProviderId: node.siteId === null ? null : stableId("provider", node.siteId),
    instanceTypeId: stableId("sku", node.sku),
    instanceId: use?.id ?? null,
    tenantId: use === undefined ? null : stableId("tenant", use.tenant),
    controllerMachineId: row.maasSystemId,
    controllerMachineType: row.maasSystemId === null ? null : "maas",
    hostname: node.hostname,
    hwSkuDeviceType: node.gpusTotal > 0 ? "gpu" : "cpu",
    vendor: inventory?.system.manufacturer ?? null,
    productName: inventory?.system.model ?? null,
    serialNumber: machine !== undefined && isReadInFull(machine.details) ? machine.details.serial : null,
    machineCapabilities: inventory === null ? [] : capabilitiesOf(inventory),
    machineInterfaces: machine === undefined ? [] : interfacesOf(machine),
    maintenanceMessage: hasPersonsCordon(node) ? node.cordonReason : null,
    health,
    ...(withMetadata ? { metadata: metadataOf(inventory, machine) } : {}),
    labels: node.rack === null ? {} : { RackIdentifier: node.rack },
    status,
    isUsableByTenant: use === undefined ? status === "Ready" : status === "InUse",
    statusHistory: history.slice(-ENTRIES_SHOWN).map(toStatusDetail),
    created: node.createdAt.toISOString(),
    updated: (history.at(-1)?.at ?? node.updatedAt).toISOString(),
  };
}
