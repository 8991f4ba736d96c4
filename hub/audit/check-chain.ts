import type { ChainPoint } from "../../shared/audit-chain.ts";
import type { Log } from "../../shared/log.ts";
import { type CheckProgress, type ClaimedPart, claimPart, storeProgress } from "../db/queries/audit-checks.ts";
import type { Db, InTx } from "../db/tx.ts";
import { periodically } from "../timing/periodically.ts";
import type { KeptHeads } from "./kept-heads.ts";
import { checkPart } from "./verify.ts";

const EVERY_MS = 30_000;
/**
 * A hub begins to check the next part of the audit chain only this many seconds after the last part began, so that several hubs check no more than
 * one.
 */
const REST_SECONDS = 20;
/** With one part of this many entries each half minute, a hub checks more than a million audit entries an hour. */
const MOST_ENTRIES = 10_000;
/** A check of the audit chain that reached the end goes on with new entries until it is an hour old; then a new check begins at the first entry. */
const AGAIN_SECONDS = 3_600;

type Where = Pick<ClaimedPart, keyof CheckProgress | "ageSeconds">;

/**
 * Returns the place in the audit chain at which the next part of the check begins. A new check of the audit chain keeps the number of faults of the
 * check before it until the new check has reached the end of the chain.
 */
function beginOf(last: Where): CheckProgress & { readonly isNew: boolean } {
  const { position, atEnd, faults, faultsBefore, verifiedThrough, head, ageSeconds } = last;
  if (!atEnd || ageSeconds < AGAIN_SECONDS)
    return { position, atEnd, faults, faultsBefore, verifiedThrough, head, isNew: false };
  return { position: 0, atEnd: false, faults: 0, faultsBefore, verifiedThrough, head, isNew: true };
}

/**
 * How far the check of the audit chain has come after a part of the chain that ended at the entry `through`; the next part begins after this entry.
 * If the audit chain has lost its newest known entry (its head), the lost head stays in the progress, so that each later part reports the loss again.
 */
function progressOf(
  begin: CheckProgress,
  part: {
    readonly through: ChainPoint;
    readonly complete: boolean;
    readonly faultCount: number;
    readonly lost: readonly unknown[];
  },
): CheckProgress {
  const { sequence } = part.through;
  const faults = Math.max(begin.faults + part.faultCount, part.lost.length);
  const reachesNew = part.lost.length === 0 && sequence > (begin.head?.sequence ?? 0);
  return {
    position: sequence,
    atEnd: part.complete,
    faults,
    faultsBefore: part.complete ? faults : begin.faultsBefore,
    verifiedThrough: Math.max(begin.verifiedThrough, sequence),
    head: reachesNew ? part.through : begin.head,
  };
}

export interface CheckOptions {
  readonly db: Db;
  readonly inTx: InTx;
  readonly log: Log;
  readonly restSeconds?: number;
  readonly mostEntries?: number;
}

/** Checks the next part of the audit chain, and stores how far the check has come. */
export async function checkNext(options: CheckOptions): Promise<void> {
  const { db, inTx, log, restSeconds = REST_SECONDS, mostEntries = MOST_ENTRIES } = options;
  const claimed = await claimPart(db, restSeconds);
  if (claimed === null) return;
  const { isNew, ...begin } = beginOf(claimed);
  const part = await checkPart(inTx, { after: begin.position, limit: mostEntries, head: begin.head });
  const first = part.lost[0] ?? part.faults[0];
  if (first !== undefined && begin.faults + begin.faultsBefore === 0)
    log.error("the audit chain is not whole: run muster audit verify", { fault: first.code, sequence: first.sequence });
  if (!(await storeProgress(db, claimed.part, { ...progressOf(begin, part), isNew })))
    log.warn("a part of the check of the audit chain took so long that another hub has begun the next part", {
      after: begin.position,
      read: part.read,
    });
}

/** Checks the audit chain part by part, one hub at a time, and counts the files of lost heads (former newest entries) in this hub's state folder. */
export function startChecker(options: CheckOptions & { readonly heads: KeptHeads }): {
  lostHeads(): number;
  close(): Promise<void>;
} {
  let lost = 0;
  const loop = periodically({
    everyMs: EVERY_MS,
    log: options.log,
    failed: "the audit chain could not be checked",
    turn: async () => {
      lost = await options.heads.countLost();
      await checkNext(options);
    },
  });
  return { lostHeads: () => lost, close: () => loop.close() };
}
