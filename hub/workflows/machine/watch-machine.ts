import type { Evidence } from "../../../shared/failures.ts";
import type { SiteId } from "../../../shared/ids.ts";
import { readObservedMachine } from "../../db/queries/maas-machines.ts";
import { readLastPoll } from "../../db/queries/maas-site-watches.ts";
import { waitKey } from "../../db/queries/workflow-wakes.ts";
import type { MaasMachineRow } from "../../db/schema/index.ts";
import type { Db, InTx } from "../../db/tx.ts";
import type { MaasMachine } from "../../maas/port.ts";
import { observeMachine } from "../../watcher/observe.ts";
import type { Wait } from "../engine/stage.ts";
import { machineEvidence } from "./verdict-table.ts";

/** If the hub's watcher, which polls MAAS, has not done so for `SILENT_SECONDS`, a waiting stage reads the machine from MAAS itself. */
const SILENT_SECONDS = 90;
/** If MAAS refused the hub's last poll because of the site's token, each waiting stage asks MAAS itself and reports the error as its own. */
const isRefused = (code: string | null): boolean => code === "unauthorized" || code === "forbidden";
const LOOK_AGAIN_SECONDS = 15;

export interface MachineWatch {
  readonly db: Db;
  readonly inTx: InTx;
  readonly siteId: SiteId;
  readonly systemId: string;
  readonly now: Date;
  readonly deadline: Date;
  /** Reads the machine from MAAS, and throws if MAAS no longer has the machine. */
  fresh(): Promise<MaasMachine>;
}

/**
 * A waiting stage reads its machine from MAAS if the hub's stored observation of the machine would end the wait (`concludes`), or if no observation
 * exists. A waiting stage also reads its machine from MAAS if the hub has not polled MAAS for a while, MAAS refused the last poll, or the stage's
 * deadline has passed. A waiting stage sends no regular requests to MAAS, and its verdict never relies on an old observation of the machine.
 */
export async function watchMachine(
  watch: MachineWatch,
  concludes: (row: MaasMachineRow) => boolean,
): Promise<MaasMachine | null> {
  if (watch.now >= watch.deadline) return readAndObserve(watch);
  const row = await readObservedMachine(watch.db, watch.siteId, watch.systemId);
  if (row !== null && !row.absent && !concludes(row)) {
    const { at, errorCode } = await readLastPoll(watch.db, watch.siteId);
    const silentMs = at === null ? Number.POSITIVE_INFINITY : watch.now.getTime() - at.getTime();
    if (silentMs <= SILENT_SECONDS * 1000 && !isRefused(errorCode)) return null;
  }
  return readAndObserve(watch);
}

/** Reads the machine from MAAS and stores the observation, so that no other stage need read the machine. */
export async function readAndObserve(watch: MachineWatch): Promise<MaasMachine> {
  const machine = await watch.fresh();
  await observeMachine(watch.inTx, watch.siteId, machine);
  return machine;
}

/** Returns the hub's last stored observation of the machine, which becomes a part of the evidence of every failure (lifecycle 4.12). */
export async function seenEvidence(db: Db, siteId: SiteId, systemId: string): Promise<Evidence> {
  const row = await readObservedMachine(db, siteId, systemId);
  if (row === null) return { maas_system_id: systemId };
  return { ...machineEvidence(row), maas_absent: row.absent, maas_observed_at: row.observedAt.toISOString() };
}

export const waitForObservation = <State>(siteId: SiteId, systemId: string, reason: string): Wait<State> => ({
  kind: "wait",
  reason,
  seconds: LOOK_AGAIN_SECONDS,
  on: waitKey.machine(siteId, systemId),
});
