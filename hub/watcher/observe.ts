import type { SiteId } from "../../shared/ids.ts";
import type { MachineDetails } from "../../shared/machine-details.ts";
import { markAbsent, type ObservedMachine, upsertObservedMachines } from "../db/queries/maas-machines.ts";
import { followBindings } from "../db/queries/node-machines.ts";
import { waitKey, wakeWorkflows } from "../db/queries/workflow-wakes.ts";
import type { InTx, Tx } from "../db/tx.ts";
import type { MaasMachine } from "../maas/port.ts";

const asObserved = (machine: MaasMachine): ObservedMachine => ({
  systemId: machine.systemId,
  hostname: machine.hostname,
  status: machine.status,
  statusName: machine.statusName,
  statusMessage: machine.statusMessage,
  errorDescription: machine.errorDescription,
  powerState: machine.powerState,
  owner: machine.owner,
  locked: machine.locked,
  ipAddresses: [...machine.ipAddresses],
  interfaceAddresses: [...machine.interfaceAddresses],
  enableHwSync: machine.enableHwSync,
  lastSync: machine.lastSync,
  nextSync: machine.nextSync,
  syncIntervalSeconds: machine.syncIntervalSeconds,
  details: detailsOf(machine),
});

const detailsOf = (machine: MaasMachine): MachineDetails => ({
  tags: machine.tags,
  pool: machine.pool,
  zone: machine.zone,
  macs: machine.macAddresses,
  hardware_uuid: machine.hardwareUuid,
  serial: machine.serial,
  board_serial: machine.boardSerial,
  chassis_serial: machine.chassisSerial,
  firmware_version: machine.firmwareVersion,
  architecture: machine.architecture,
  osystem: machine.osystem,
  distro_series: machine.distroSeries,
  cpu_count: machine.cpuCount,
  memory_mib: machine.memoryMib,
  ephemeral: machine.ephemeral,
});

export interface Seen {
  readonly machines: readonly MaasMachine[];
  /** The time when the reading of the machines began, by the database's clock; null means that the reading began at the present time. */
  readonly readSince: string | null;
}

/**
 * Stores readings of machines and wakes the workflows that wait on a changed machine. `keepObserved` works in the caller's transaction, with a fixed
 * number of statements. The transaction locks the rows of machines first, then the bindings of nodes to machines, and workflows last. Each machine
 * may occur in only one element of the argument `readings`.
 */
export async function keepObserved(
  tx: Tx,
  siteId: SiteId,
  readings: readonly Seen[],
  gone: readonly string[] = [],
): Promise<void> {
  const changed: string[] = [];
  for (const { machines, readSince } of readings)
    changed.push(...(await upsertObservedMachines(tx, siteId, machines.map(asObserved), readSince)));
  changed.push(...(await markAbsent(tx, siteId, gone)));
  const seen = readings.flatMap(({ machines }) => machines.map(({ systemId }) => systemId));
  const bound = await followBindings(tx, siteId, changed, seen);
  await wakeWorkflows(tx, [
    ...changed.map((systemId) => waitKey.machine(siteId, systemId)),
    // A stage that waits for a node's agent must learn that the node's machine is gone.
    ...bound.map(waitKey.node),
  ]);
}

/** Stores the reading of one machine that a stage made, so that all other stages can use it too. */
export const observeMachine = (inTx: InTx, siteId: SiteId, machine: MaasMachine): Promise<void> =>
  inTx((tx) => keepObserved(tx, siteId, [{ machines: [machine], readSince: null }]));
