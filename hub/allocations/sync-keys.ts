import { ApiError } from "../../shared/api/errors.ts";
import type { AllocationId } from "../../shared/ids.ts";
import { MOST_KEYS_OF_AN_ACCOUNT } from "../../shared/ssh-key.ts";
import { isDueKeys, isSettledKeys, keysNow } from "../db/queries/allocation-keys.ts";
import { setKeys } from "../db/queries/allocations.ts";
import { databaseNow } from "../db/queries/clock.ts";
import { recordNodeEvent } from "../db/queries/node-events.ts";
import { readTask } from "../db/queries/task-reads.ts";
import { keepUid } from "../db/queries/tenant-uids.ts";
import type { AllocationRow } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";
import { grantedUid, judgeGrant } from "../node/judge-grant.ts";
import { queueKeys } from "./create-allocation.ts";
import { lockBoth } from "./lock-both.ts";

/**
 * The time after which the hub repeats a failed change of an account's SSH keys. Until the repeated change succeeds, the account may have a key that
 * its tenant has removed.
 */
const AGAIN_AFTER_MS = 300_000;

/** Queues the task by which the agent gives the account of an active allocation its changed keys; the same type of task also makes accounts. */
export async function orderDueKeys(tx: Tx, id: AllocationId): Promise<number> {
  const { allocation } = await lockBoth(tx, id);
  if (!(await isDueKeys(tx, id))) return 0;
  const sshKeys = await keysNow(tx, allocation);
  if (sshKeys.length === 0 || sshKeys.length > MOST_KEYS_OF_AN_ACCOUNT)
    throw new ApiError(
      "conflict",
      `The keys and groups of allocation ${id} stand for ${sshKeys.length} keys, and an account has 1 to ${MOST_KEYS_OF_AN_ACCOUNT}. Change the groups, or release the allocation.`,
    );
  const task = await queueKeys(tx, { ...allocation, sshKeys });
  await setKeys(tx, id, { sshKeys, keysDue: false, keysTaskId: task.id });
  await tell(tx, allocation, `the agent changes the keys of the account; it then has ${sshKeys.length}`);
  return 1;
}

/**
 * Judges a finished task by which the agent changed the SSH keys of a tenant's account. After a success, the task with the changed keys takes the
 * place of the task that made the account, because its result is the newest evidence of the account. After a failure of this task, the hub queues the
 * task again five minutes later.
 */
export async function settleKeys(tx: Tx, id: AllocationId): Promise<number> {
  const { allocation } = await lockBoth(tx, id);
  if (!(await isSettledKeys(tx, id))) return 0;
  const { keysTaskId } = allocation;
  const task = keysTaskId === null ? null : await readTask(tx, keysTaskId);
  const uid = grantedUid(task);
  if (uid !== null) await keepUid(tx, allocation.nodeId, uid);
  const verdict = judgeGrant(task);
  if (verdict.to === "active") {
    await setKeys(tx, id, { grantTaskId: keysTaskId, keysTaskId: null });
    await tell(tx, allocation, "the account has the changed keys");
    return 1;
  }
  const mayRepeatAt = (task?.finishedAt?.getTime() ?? 0) + AGAIN_AFTER_MS;
  if (allocation.keysDue || mayRepeatAt <= (await databaseNow(tx)).getTime()) {
    await setKeys(tx, id, { keysDue: true, keysTaskId: null });
    return 1;
  }
  throw new ApiError(
    "conflict",
    `The agent could not change the keys of the account on ${allocation.hostname}: ${verdict.message}. The hub orders them again five minutes after each failure. Correct the cause on the host, or release the allocation.`,
  );
}

/** The history of the node names the number of keys only, because an SSH key may identify a person. */
const tell = (tx: Tx, { id, nodeId, tenant }: AllocationRow, what: string): Promise<void> =>
  recordNodeEvent(tx, {
    nodeId,
    type: "allocation",
    owner: "muster",
    message: `Allocation ${id} to ${tenant}: ${what}`,
    details: { allocation_id: id },
  });
