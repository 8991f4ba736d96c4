import type { Log } from "../../shared/log.ts";
import { type CheckProgress, type ClaimedPart, claimPart, storeProgress } from "../db/queries/audit-checks.ts";
import type { Db, InTx } from "../db/tx.ts";
import { periodically } from "../timing/periodically.ts";
import type { KeptHeads } from "./kept-heads.ts";
import { checkPart } from "./verify.ts";

const EVERY_MS = 30_000;
/** Two hubs whose turns are close to each other check one part. */
const REST_SECONDS = 20;
/** With a part each half minute, a hub checks more than a million entries an hour. */
const MOST_ENTRIES = 10_000;
/** A check that came to the end goes on with new entries for an hour, and then begins again at the first entry. */
const AGAIN_SECONDS = 3_600;

type Where = Pick<ClaimedPart, keyof CheckProgress | "ageSeconds">;

/** Where the next part of the check begins. A new check keeps the faults of the last one until it has come to the end itself. */
function beginOf(last: Where): CheckProgress & { readonly isNew: boolean } {
  const { position, atEnd, faults, faultsBefore, verifiedThrough, ageSeconds } = last;
  if (!atEnd || ageSeconds < AGAIN_SECONDS)
    return { position, atEnd, faults, faultsBefore, verifiedThrough, isNew: false };
  return { position: 0, atEnd: false, faults: 0, faultsBefore, verifiedThrough, isNew: true };
}

/** What a part that ended at the entry `through` leaves for the next part. */
function progressOf(
  begin: CheckProgress,
  part: { readonly through: number; readonly complete: boolean; readonly faultCount: number },
): CheckProgress {
  const faults = begin.faults + part.faultCount;
  return {
    position: part.through,
    atEnd: part.complete,
    faults,
    faultsBefore: part.complete ? faults : begin.faultsBefore,
    verifiedThrough: part.complete ? part.through : begin.verifiedThrough,
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
  const part = await checkPart(inTx, { after: begin.position, limit: mostEntries, heads: [] });
  const [first] = part.faults;
  if (first !== undefined && begin.faults + begin.faultsBefore === 0)
    log.error("the audit chain is not whole: run muster audit verify", { fault: first.code, sequence: first.sequence });
  const { through, complete, faultCount } = part;
  await storeProgress(db, claimed.part, {
    ...progressOf(begin, { through: through.sequence, complete, faultCount }),
    isNew,
  });
}

/** Checks the chain part by part, one hub at a time, and counts the lost heads of this hub. */
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
