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

/** A watcher that has not asked MAAS for this long is away: the stage looks itself. */
const SILENT_SECONDS = 90;
/** MAAS refuses our token: whoever waits asks by himself, and says so in his own name. */
const isRefused = (code: string | null): boolean => code === "unauthorized" || code === "forbidden";
/** How long a stage waits for the watcher's word before it looks again. */
const LOOK_AGAIN_SECONDS = 15;

/** The one machine that a stage of any workflow looks at. */
export interface MachineWatch {
  readonly db: Db;
  readonly inTx: InTx;
  readonly siteId: SiteId;
  readonly systemId: string;
  readonly now: Date;
  readonly deadline: Date;
  /** Reads it from MAAS; throws where it is gone. */
  fresh(): Promise<MaasMachine>;
}

/**
 * The machine itself where there is reason to look at it: the watcher's observation ends the wait by the word of `concludes`, there is none
 * yet, the watcher has fallen silent, or the stage is out of time. Null: nothing new. So a wait costs no request of its own, and no
 * verdict rests on an old look.
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

/** What one stage saw is seen by everybody, and need not be looked at again. */
export async function readAndObserve(watch: MachineWatch): Promise<MaasMachine> {
  const machine = await watch.fresh();
  await observeMachine(watch.inTx, watch.siteId, machine);
  return machine;
}

/** What the watcher last saw of the machine: no failure leaves an operator without it (lifecycle 4.12). */
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
