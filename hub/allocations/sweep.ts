import { ApiError } from "../../shared/api/errors.ts";
import type { AllocationId } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import { findDueKeys, findSettledKeys } from "../db/queries/allocation-keys.ts";
import {
  findDueEnds,
  findHostsGone,
  findPastEnds,
  findSettledGrants,
  type IdPage,
  isSettledGrant,
} from "../db/queries/allocation-sweep.ts";
import { forgetAllocationProblems, noteAllocationProblem } from "../db/queries/allocations.ts";
import { readTask } from "../db/queries/task-reads.ts";
import { keepUid } from "../db/queries/tenant-uids.ts";
import type { Db, InTx, Tx } from "../db/tx.ts";
import { beginEnding, moveAllocation } from "../node/allocation-moves.ts";
import { grantedUid, judgeGrant } from "../node/judge-grant.ts";
import type { Countersign } from "../node/store-record.ts";
import type { WakeSignal } from "../timing/wake-signal.ts";
import { wheneverDue } from "../timing/whenever-due.ts";
import { recordLostHost } from "../workflows/decommission/record-lost-host.ts";
import { continueEnding, mustBeDeletable } from "./end-allocation.ts";
import { lockBoth } from "./lock-both.ts";
import { orderDueKeys, settleKeys } from "./sync-keys.ts";

const EVERY_MS = 2_000;
/** The largest number of allocations that one query for allocations in need of a change returns. */
const AT_ONCE = 50;
const PLANNED_END = "Its planned end has passed";
const BY_HUB = { actor: "muster", forced: false } as const;

export interface AllocationSweep {
  readonly db: Db;
  readonly inTx: InTx;
  readonly log: Log;
  /** Signs the sanitization record for a tenant's use that ends without a cleaning of the node. */
  readonly countersign: Countersign;
  readonly atOnce?: number;
}

/** Moves one allocation to its next status. Returns 1 if this hub has changed the allocation, and 0 if another hub has already done so. */
type Handle = (tx: Tx, id: AllocationId, sweep: AllocationSweep) => Promise<number>;

/** The queries for allocations that need a change, each with the function that makes the change. */
const WORK: readonly { readonly find: (db: Db, page: IdPage) => Promise<AllocationId[]>; readonly handle: Handle }[] = [
  { find: findSettledGrants, handle: settleGrant },
  { find: findHostsGone, handle: endOfGoneHost },
  { find: findSettledKeys, handle: settleKeys },
  { find: findDueKeys, handle: orderDueKeys },
  { find: findPastEnds, handle: beginDue },
  { find: findDueEnds, handle: endDue },
];

/**
 * Moves each allocation to its next status if the change needs no operator. `sweepAllocations` judges finished tasks of `granting` allocations, ends
 * allocations whose host is gone, brings changed SSH keys to accounts, and begins the cleaning of nodes when it is due. `sweepAllocations` decides
 * from stored rows alone, so any hub may run it at any time, even after another hub was killed. Each allocation has its own transaction, so an
 * allocation that cannot continue delays no other allocation.
 */
export async function sweepAllocations(sweep: AllocationSweep): Promise<number> {
  const { db, atOnce = AT_ONCE } = sweep;
  let handled = 0;
  const stuck: AllocationId[] = [];
  for (const { find, handle } of WORK) {
    let after: AllocationId | null = null;
    do {
      const ids: AllocationId[] = await find(db, { after, limit: atOnce });
      for (const id of ids) {
        const changed = await handleOne(sweep, id, handle);
        if (changed === "stuck") stuck.push(id);
        else handled += changed;
      }
      after = ids.length < atOnce ? null : (ids.at(-1) ?? null);
    } while (after !== null);
  }
  await sweep.inTx((tx) => forgetAllocationProblems(tx, stuck));
  return handled;
}

/**
 * If an allocation cannot continue, `handleOne` stores the reason in the allocation's row, and two seconds later the hub tries again. If the hub
 * cannot store why an allocation cannot continue, `handleOne` throws, because the fault is in the database.
 */
async function handleOne(sweep: AllocationSweep, id: AllocationId, handle: Handle): Promise<number | "stuck"> {
  const { inTx, log } = sweep;
  try {
    return await inTx((tx) => handle(tx, id, sweep));
  } catch (error) {
    const isNew = await inTx((tx) => noteAllocationProblem(tx, id, problemOf(error)));
    const told = { allocation_id: id, error };
    if (isNew) log.warn("an allocation cannot continue; each sweep tries again", told);
    else log.debug("an allocation still cannot continue", told);
    return "stuck";
  }
}

/**
 * Returns the reason why an allocation cannot continue, as a text for operators. The message of an unexpected error may quote database rows, so only
 * the hub's log contains such a message.
 */
const problemOf = (error: unknown): string =>
  error instanceof ApiError
    ? error.message
    : "The hub met an unexpected error. Look for the allocation's id in the log of the hub.";

async function settleGrant(tx: Tx, id: AllocationId): Promise<number> {
  const { allocation } = await lockBoth(tx, id);
  if (!(await isSettledGrant(tx, id))) return 0;
  const { grantTaskId } = allocation;
  const task = grantTaskId === null ? null : await readTask(tx, grantTaskId);
  const uid = grantedUid(task);
  if (uid !== null) await keepUid(tx, allocation.nodeId, uid);
  const verdict = judgeGrant(task);
  const { to, message } = verdict;
  const error = verdict.to === "failed" ? { errorCode: verdict.code, errorMessage: message } : {};
  await moveAllocation(tx, allocation, { from: "granting", to }, { owner: BY_HUB.actor, message, ...error });
  return 1;
}

/**
 * Ends an allocation whose host is gone. If no operation has written a sanitization record of the allocation, the hub writes one in the same
 * transaction, and the record says why the node was not cleaned. Therefore every use of a host by a tenant ends with a sanitization record.
 */
async function endOfGoneHost(tx: Tx, id: AllocationId, { countersign }: AllocationSweep): Promise<number> {
  const { allocation, node } = await lockBoth(tx, id);
  if (allocation.status === "ended") return 0;
  const isRemoved = node === null || node.status === "deleted";
  const why = isRemoved ? "Its node was removed" : "MAAS has released its host";
  await recordLostHost(tx, allocation, { because: isRemoved ? "node_removed" : "host_released", countersign });
  await beginEnding(tx, allocation, { ...BY_HUB, reason: why });
  await moveAllocation(tx, allocation, { from: "ending", to: "ended" }, { owner: BY_HUB.actor, message: why });
  return 1;
}

/**
 * Makes an allocation `ending` after its planned end, unless a health override prevents it. The change to `ending` has a transaction of its own, so
 * that the tenant's time ends even if the hub cannot yet clean the node.
 */
async function beginDue(tx: Tx, id: AllocationId): Promise<number> {
  const { allocation } = await lockBoth(tx, id);
  if (allocation.status === "ended" || allocation.status === "ending") return 0;
  await mustBeDeletable(tx, allocation);
  await beginEnding(tx, allocation, { ...BY_HUB, reason: PLANNED_END });
  return 1;
}

/**
 * Begins to clean the node of an `ending` allocation for the next tenant. `endDue` checks the locked allocation once more, because another hub or an
 * operator may have ended it since the query that found it.
 */
async function endDue(tx: Tx, id: AllocationId): Promise<number> {
  const { allocation } = await lockBoth(tx, id);
  if (allocation.status === "ended" || allocation.decommissionId !== null) return 0;
  if (allocation.status !== "ending") await mustBeDeletable(tx, allocation);
  await continueEnding(tx, allocation, { ...BY_HUB, reason: PLANNED_END });
  return 1;
}

/** Runs `sweepAllocations` every two seconds, and at once when `due` is raised, for example because an agent has ended a task. */
export const startAllocationSweep = ({
  everyMs = EVERY_MS,
  ...options
}: AllocationSweep & { readonly due: WakeSignal; readonly everyMs?: number }): { close(): Promise<void> } =>
  wheneverDue({
    due: options.due,
    everyMs,
    turn: () => sweepAllocations(options),
    log: options.log,
    failed: "the sweep of allocations failed; the next sweep tries again",
  });
