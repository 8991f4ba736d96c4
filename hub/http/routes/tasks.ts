import { randomUUID } from "node:crypto";
import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { page } from "../../../shared/api/onboardings.ts";
import { TaskCreate, TaskView } from "../../../shared/api/tasks.ts";
import { NodeId, TaskId } from "../../../shared/ids.ts";
import type { Json } from "../../../shared/json.ts";
import { TASKS } from "../../../shared/tasks/index.ts";
import { asksForPlan } from "../../../shared/tasks/plan.ts";
import { KEPT_OF_A_NODE } from "../../db/kept.ts";
import { countOpenTasks, listTasks, readTask } from "../../db/queries/task-reads.ts";
import { cancelTask, enqueueTask } from "../../db/queries/tasks.ts";
import type { Task as TaskRow } from "../../db/schema/index.ts";
import { pageQuery } from "../page.ts";
import { readRoute, writeRoute } from "../route.ts";
import { mustFindNode } from "./nodes.ts";

const NodeParams = z.strictObject({ id: NodeId });
const ofNode = "/api/v1/admin/nodes/{id}/tasks";
/**
 * A task that an operator orders (a check of the agent, a close of terminals, or a plan) expires if no agent takes it within
 * `ORDER_DEADLINE_SECONDS`, because a late result is useless.
 */
const ORDER_DEADLINE_SECONDS = 300;

const toTask = (task: TaskRow): z.input<typeof TaskView> => ({
  id: task.id,
  node_id: task.nodeId,
  type: task.type,
  plan: asksForPlan(task.input),
  state: task.state,
  epoch: task.epoch,
  attempts: task.attempts,
  result: (task.result ?? null) as Json,
  error_code: task.errorCode,
  error_message: task.errorMessage,
  created_at: task.createdAt.toISOString(),
  finished_at: task.finishedAt?.toISOString() ?? null,
});

/**
 * The stored input of an operator's order. A task that an operator orders with `plan` only reports what the task would do, and contains no secret, so
 * a field for a secret is null in the stored input.
 */
function inputOf(order: TaskCreate) {
  if (order.type === "node.heartbeat_check") return order.input;
  const secrets = order.type === "node.hw_sync_reseed" ? { machine_token: null } : {};
  return TASKS[order.type].input.parse({ ...order.input, ...secrets, plan: order.plan });
}

const createTask = writeRoute({
  operationId: "createNodeTask",
  method: "POST",
  path: ofNode,
  tag: "tasks",
  summary:
    "Queue a check of a node's agent, the close of terminals, or the plan of a task: what it would do, without doing it",
  permission: "write",
  right: "operate_nodes",
  place: { of: "node", param: "id" },
  params: NodeParams,
  body: TaskCreate,
  status: 202,
  response: TaskView,
  before: ({ params, deps }) => mustFindNode(deps.db, params.id),
  write: async ({ params, body }, tx) => {
    if ((await countOpenTasks(tx, params.id)) >= KEPT_OF_A_NODE.openTasks)
      throw new ApiError(
        "conflict",
        `Node ${params.id} has ${KEPT_OF_A_NODE.openTasks} unfinished tasks, which is the limit. Cancel some, or wait for them.`,
      );
    const input = inputOf(body);
    const { task } = await enqueueTask(tx, {
      nodeId: params.id,
      type: body.type,
      input,
      idempotencyKey: `api:${randomUUID()}`,
      deadlineSeconds: ORDER_DEADLINE_SECONDS,
    });
    const details = { task_id: task.id, type: task.type, plan: asksForPlan(input) };
    return { body: toTask(task), audit: { target: `nodes/${params.id}`, details } };
  },
});

const listNodeTasks = readRoute({
  operationId: "listNodeTasks",
  method: "GET",
  path: ofNode,
  tag: "tasks",
  summary: "List a node's last tasks, newest first",
  permission: "read",
  right: "read_fleet",
  place: { of: "node", param: "id" },
  params: NodeParams,
  query: z.strictObject({ limit: pageQuery.limit }),
  status: 200,
  response: page(TaskView),
  read: async ({ params, query, deps }) => {
    await mustFindNode(deps.db, params.id);
    return { items: (await listTasks(deps.db, params.id, query.limit)).map(toTask), next_cursor: null };
  },
});

const getTask = readRoute({
  operationId: "getTask",
  method: "GET",
  path: "/api/v1/admin/tasks/{id}",
  tag: "tasks",
  summary: "Read a task",
  permission: "read",
  right: "read_fleet",
  place: { of: "task", param: "id" },
  params: z.strictObject({ id: TaskId }),
  status: 200,
  response: TaskView,
  read: async ({ params, deps }) => {
    const task = await readTask(deps.db, params.id);
    if (task === null) throw new ApiError("not_found", `There is no task ${params.id}.`);
    return toTask(task);
  },
});

const cancel = writeRoute({
  operationId: "cancelTask",
  method: "POST",
  path: "/api/v1/admin/tasks/{id}/cancel",
  tag: "tasks",
  summary: "Cancel a task; a task that an agent has received is cancelling until the agent reports its result",
  permission: "write",
  right: "operate_nodes",
  place: { of: "task", param: "id" },
  params: z.strictObject({ id: TaskId }),
  status: 200,
  response: TaskView,
  write: async ({ params }, tx) => {
    const task = (await cancelTask(tx, params.id)) ?? (await readTask(tx, params.id));
    if (task === null) throw new ApiError("not_found", `There is no task ${params.id}.`);
    return { body: toTask(task), audit: { target: `tasks/${params.id}` } };
  },
});

export const taskRoutes = [createTask, listNodeTasks, getTask, cancel];
