import { type Failure, failure } from "../../../../shared/failures.ts";
import type { AllocationId } from "../../../../shared/ids.ts";
import { TASKS } from "../../../../shared/tasks/index.ts";
import { keysNow } from "../../../db/queries/allocation-keys.ts";
import { lockAllocation, moveToNewSystem, readAllocation, setKeys } from "../../../db/queries/allocations.ts";
import { lockNode } from "../../../db/queries/nodes.ts";
import { newestGrant } from "../../../db/queries/reinstalls.ts";
import { readTenancyOf } from "../../../db/queries/tenancies.ts";
import { keepUid, reserveUid } from "../../../db/queries/tenant-uids.ts";
import type { AllocationRow, Task } from "../../../db/schema/index.ts";
import type { Tx } from "../../../db/tx.ts";
import { tellChange } from "../../../node/allocation-moves.ts";
import { grantedUid, judgeGrant } from "../../../node/judge-grant.ts";
import type { Observation, Outcome } from "../../engine/stage.ts";
import { inFencedTx } from "../../services.ts";
import { StageFailure } from "../../stage-failure.ts";
import {
  type AgentWork,
  cancelWork,
  isHistory,
  judgeTask,
  operationOf,
  queueWork,
  settledTask,
  stageSeconds,
} from "../agent-work.ts";
import {
  type DecommissionContext,
  type DecommissionStageOf,
  type DecommissionState,
  stateConflict,
} from "../decommission-context.ts";
import { isCleanable } from "../keeps-status.ts";

/** The agent may take `GRANT_SECONDS` to make the tenant's account, as long as it may take for the account of a new allocation. */
const GRANT_SECONDS = 900;

/**
 * Returns the order for the account that the tenant had before the reinstall. The order for the account asks for the uid that the tenant had, because
 * the tenant's files on the data disks belong to that uid. An earlier order for the tenant's account, even one of a cancelled reinstall, contains the
 * uid.
 */
async function accountOf(tx: Tx, context: DecommissionContext) {
  const allocation = await mustLock(tx, context);
  const uid = (await uidOf(tx, allocation)) ?? (await reserveUid(tx, allocation.nodeId));
  return {
    allocation_id: allocation.id,
    login_user: allocation.loginUser,
    ssh_keys: await keysNow(tx, allocation),
    root: allocation.grantsRoot,
    plan: false,
    ...(uid === null ? {} : { lowest_uid: uid }),
  };
}

async function uidOf(tx: Tx, { id, nodeId }: AllocationRow): Promise<number | undefined> {
  const earlier = GRANT_INPUT.safeParse((await newestGrant(tx, nodeId, id))?.input).data?.lowest_uid;
  return (await readTenancyOf(tx, id))?.uid ?? earlier;
}

const WAITS = "The agent to make the tenant's account on the new system";
const GRANT_INPUT = TASKS["allocation.grant_user"].input;
const GRANT: AgentWork<"allocation.grant_user"> = {
  type: "allocation.grant_user",
  undoneBy: null,
  input: (context, tx) => accountOf(tx, context),
  workSeconds: () => GRANT_SECONDS,
  isAskedFor: () => true,
  failed: (context, task) => notRestored(context, task, task.errorMessage ?? `the task is ${task.state}`),
  waitsFor: () => WAITS,
};

const notRestored = ({ node }: DecommissionContext, task: Task, why: string): Failure =>
  failure(
    "upstream_transient",
    "tenant_not_restored",
    `The account of the instance on ${node.hostname} was not made on the new system: ${why}. Correct the cause on the host and resume, or release the instance.`.slice(
      0,
      1_000,
    ),
    { node_id: node.id, task_id: task.id },
  );

/** If the allocation has ended, nobody has a right to the new system, and the host still has what the tenant left on its disks. */
const instanceGone = ({ node }: DecommissionContext, id: AllocationId | null): Failure =>
  failure(
    "state_ambiguity",
    "node_state_conflict",
    `Instance ${id ?? "?"} of node ${node.hostname} has ended, so nobody gets the new system. Cancel the reinstall, and reimage the node with an erase of its disks.`,
    { node_id: node.id, allocation_id: id },
  );

async function mustLock(tx: Tx, context: DecommissionContext): Promise<AllocationRow> {
  const { allocation_id: id } = context.input;
  // Every transaction locks a node before the node's allocation.
  await lockNode(tx, context.node.id);
  const allocation = id === null ? null : await lockAllocation(tx, id);
  if (allocation === null || allocation.status === "ended") throw new StageFailure(instanceGone(context, id));
  return allocation;
}

const OVER = "The instance ends, so its account is not made again, and the host is cleaned after this operation";

async function look(context: DecommissionContext): Promise<Observation<DecommissionState>> {
  const { node, input, services } = context;
  if (!isCleanable(node.status))
    return { kind: "failed", failure: stateConflict(context, node.status, "given back to its tenant") };
  const { allocation_id: id } = input;
  const allocation = id === null ? null : await readAllocation(services.db, id);
  if (allocation === null || allocation.status === "ended")
    return { kind: "failed", failure: instanceGone(context, id) };
  if (allocation.status !== "active")
    return {
      kind: "skipped",
      message: OVER,
      commit: async (tx) => void (await cancelWork(tx, operationOf(context), GRANT)),
    };
  const task = await settledTask(context, GRANT);
  if (task?.state !== "succeeded") return judgeTask(context, GRANT, task) ?? { kind: "not_started" };
  if (isHistory(context, task)) return { kind: "not_started" };
  const uid = grantedUid(task);
  const keep = async (tx: Tx): Promise<void> => (uid === null ? undefined : keepUid(tx, node.id, uid));
  const verdict = judgeGrant(task);
  if (verdict.to === "failed")
    return {
      kind: "failed",
      failure: notRestored(context, task, verdict.message),
      patch: { failed_task_id: task.id },
      commit: keep,
    };
  const wanted = GRANT_INPUT.safeParse(task.input).data?.lowest_uid;
  const other =
    uid === null || wanted === undefined || uid === wanted
      ? ""
      : `, with uid ${uid}, because uid ${wanted} was taken on the new system; files on the data disks may belong to ${wanted}`;
  return {
    kind: "done",
    message: `The tenant has the instance again${other}`,
    details: { task_id: task.id },
    commit: async (tx) => {
      await keep(tx);
      await giveBack(tx, context, task);
    },
  };
}

/**
 * Makes the task of this reinstall the allocation's evidence that the agent has made the tenant's account. If the allocation has begun to end,
 * `giveBack` changes nothing.
 */
async function giveBack(tx: Tx, context: DecommissionContext, task: Task): Promise<void> {
  const allocation = await mustLock(tx, context);
  if (allocation.status !== "active") return;
  await setKeys(tx, allocation.id, { grantTaskId: task.id });
  await tellChange(tx, allocation, "muster", "the host is installed anew, and the tenant can log in again");
}

/**
 * One transaction orders the agent to make the tenant's account, and ties the allocation to the new system. Once the hub has ordered the tenant's
 * account, the new system counts as used by the tenant, even if the task that makes the account fails.
 */
async function run(context: DecommissionContext): Promise<Outcome<DecommissionState>> {
  const { node } = context;
  await inFencedTx(context, async (tx) => {
    const allocation = await mustLock(tx, context);
    if (allocation.status !== "active") return;
    const task = await queueWork(tx, context, GRANT);
    const { ssh_keys: sshKeys } = GRANT_INPUT.parse(task.input);
    await moveToNewSystem(tx, allocation.id, { generation: node.generation, sshKeys });
  });
  return { kind: "wait", reason: WAITS, seconds: 1 };
}

/** Makes the tenant's account on the new system, with the login, keys and rights of the allocation. */
export const restoreTenant: DecommissionStageOf<"restore_tenant"> = {
  name: "restore_tenant",
  title: "Have the agent make the tenant's account on the new system",
  reentry: { rule: "observe_first", observe: look },
  timeout: {
    seconds: (context) => stageSeconds(context, GRANT),
    failure: (context) =>
      failure(
        "upstream_transient",
        "tenant_not_restored",
        `The agent of ${context.node.hostname} did not make the account of the instance in time. Bring the agent back and resume, or release the instance.`,
        { node_id: context.node.id, agent_connected: context.session !== null },
      ),
  },
  retry: { maxAttempts: 2, baseSeconds: 5, maxSeconds: 60 },
  overrides: { post_deploy_connectivity_failure: { retry: "never" } },
  run,
  compensate: async (context) => ({
    kind: "done",
    message: "The task is cancelled if the agent had not ended it; the end of the operation decides about the node",
    commit: async (tx) => void (await cancelWork(tx, operationOf(context), GRANT)),
  }),
};
