import type { RepairId } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import { isOnlineUnderWay } from "../../shared/repair.ts";
import { type DueWork, dueWorkOf, findDueCases } from "../db/queries/repair-cases.ts";
import type { RepairCase } from "../db/schema/index.ts";
import type { Db, InTx, Tx } from "../db/tx.ts";
import { periodically } from "../timing/periodically.ts";
import { becomeFull, endAttempt } from "./end-attempt.ts";
import { lockNodeAndCase, moveCase } from "./move-case.ts";
import { incomplete } from "./release-for-repair.ts";

const EVERY_MS = 5_000;
const AT_ONCE = 100;

export interface RepairSweep {
  readonly db: Db;
  readonly inTx: InTx;
  readonly log: Log;
}

const BY = { actor: "muster", issue: null } as const;

/**
 * Continues the repair cases that need no person. A repair attempt whose claim on the machine or whose access to the host is over ends with the
 * outcome `unknown`, which is no success. An online repair case, in which the tenant keeps the machine, becomes a full one if its tenant has gone,
 * and a repair case ends if its node was removed. The hub's periodic work on repair cases decides from database rows alone, so any hub may do it.
 */
export async function sweepRepairs({ db, inTx, log }: RepairSweep): Promise<number> {
  let changed = 0;
  for (const id of await findDueCases(db, AT_ONCE))
    try {
      changed += await inTx((tx) => handle(tx, id));
    } catch (error) {
      log.warn("a repair cannot continue; each sweep tries again", { repair_id: id, error });
    }
  return changed;
}

async function handle(tx: Tx, id: RepairId): Promise<number> {
  const { row } = await lockNodeAndCase(tx, id);
  const work = await dueWorkOf(tx, id);
  if (work === null) return 0;
  await WORK[work](tx, row);
  return 1;
}

const lapse = (tx: Tx, row: RepairCase, message: string): Promise<RepairCase> =>
  endAttempt(tx, row, { ...BY, outcome: "unknown", message, finding: incomplete(undefined) });

const WORK: Readonly<Record<DueWork, (tx: Tx, row: RepairCase) => Promise<unknown>>> = {
  node_gone: (tx, row) =>
    moveCase(tx, row, "abandon", { entry: "abandoned", actor: BY.actor, message: "Its node was removed" }),
  claim_over: (tx, row) =>
    lapse(tx, row, `${row.claimedBy} reported no outcome until ${row.claimUntil?.toISOString()}, the end of the claim`),
  access_over: (tx, row) => lapse(tx, row, `The access of ${row.claimedBy} ended without a reported outcome`),
  tenant_gone: async (tx, row) => {
    const message = "The tenant no longer has the machine";
    const ended = isOnlineUnderWay(row.mode, row.state) ? await lapse(tx, row, message) : row;
    if (ended.mode === "online") await becomeFull(tx, ended, { ...BY, message, mayRequest: false });
  },
};

export const startRepairSweep = (sweep: RepairSweep): { close(): Promise<void> } =>
  periodically({
    everyMs: EVERY_MS,
    turn: async () => {
      await sweepRepairs(sweep);
    },
    log: sweep.log,
    failed: "the sweep of repairs failed; the next sweep tries again",
  });
