import { ApiError } from "../../shared/api/errors.ts";
import type { AllocationId } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import { findDueEnds, findHostsGone, lockSettledGrants } from "../db/queries/allocations.ts";
import { readTask } from "../db/queries/task-reads.ts";
import type { Db, InTx, Tx } from "../db/tx.ts";
import { beginEnding, moveAllocation } from "../node/allocation-moves.ts";
import type { WakeSignal } from "../timing/wake-signal.ts";
import { continueEnding } from "./end-allocation.ts";
import { judgeGrant } from "./judge-grant.ts";
import { lockBoth } from "./lock-both.ts";

const EVERY_MS = 2_000;
/** One step of the sweep handles at most this many allocations. The next sweep handles further allocations. */
const AT_ONCE = 50;
const BY_HUB = { actor: "muster", forced: false } as const;

export interface AllocationSweep {
  readonly db: Db;
  readonly inTx: InTx;
  readonly log: Log;
}

/**
 * Continues every allocation that needs no operator. The sweep judges the finished tasks of `granting` allocations, and ends allocations whose host
 * is gone. The sweep begins the turnover of allocations whose planned end has passed. The sweep decides from stored rows alone, so any hub may run
 * the sweep at any time, also after another hub was killed. Returns the number of allocations that `sweepAllocations` has handled.
 */
export async function sweepAllocations({ db, inTx, log }: AllocationSweep): Promise<number> {
  let moved = await inTx(settleGrants);
  for (const id of await findHostsGone(db, AT_ONCE)) moved += await inTx((tx) => endOfGoneHost(tx, id));
  for (const id of await findDueEnds(db, AT_ONCE)) {
    try {
      moved += await inTx((tx) => endDue(tx, id));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      // The next sweep tries again to end this allocation.
      log.debug("an allocation cannot be ended yet", { allocation_id: id, error });
    }
  }
  return moved;
}

async function settleGrants(tx: Tx): Promise<number> {
  const settled = await lockSettledGrants(tx, AT_ONCE);
  for (const row of settled) {
    const verdict = judgeGrant(row.grantTaskId === null ? null : await readTask(tx, row.grantTaskId));
    const { to, message } = verdict;
    const error = verdict.to === "failed" ? { errorCode: verdict.code, errorMessage: message } : {};
    await moveAllocation(tx, row, { from: "granting", to }, { owner: BY_HUB.actor, message, ...error });
  }
  return settled.length;
}

async function endOfGoneHost(tx: Tx, id: AllocationId): Promise<number> {
  const { allocation, node } = await lockBoth(tx, id);
  if (allocation.status === "ended") return 0;
  const why = node === null || node.status === "deleted" ? "Its node was removed" : "MAAS has released its host";
  await beginEnding(tx, allocation, { ...BY_HUB, reason: why });
  await moveAllocation(tx, allocation, { from: "ending", to: "ended" }, { owner: BY_HUB.actor, message: why });
  return 1;
}

/** Before `endDue` locks an allocation, another hub may have ended the allocation, or an operator may have released the allocation. */
async function endDue(tx: Tx, id: AllocationId): Promise<number> {
  const { allocation } = await lockBoth(tx, id);
  if (allocation.status === "ended" || allocation.decommissionId !== null) return 0;
  await continueEnding(tx, allocation, { ...BY_HUB, reason: "Its planned end has passed" });
  return 1;
}

/** Runs the sweep of allocations every two seconds, and at once when `due` is raised, for example because an agent has ended a task. */
export function startAllocationSweep(
  options: AllocationSweep & { readonly due: WakeSignal; readonly everyMs?: number },
): { close(): Promise<void> } {
  const { due, log, everyMs = EVERY_MS } = options;
  let closing = false;
  const loop = async (): Promise<void> => {
    while (!closing) {
      await sweepAllocations(options).catch((error: unknown) =>
        log.warn("the sweep of allocations failed; the next sweep tries again", { error }),
      );
      if (!closing) await due.wait(everyMs);
    }
  };
  const done = loop();
  return {
    close: async () => {
      closing = true;
      due.raise();
      await done;
    },
  };
}
