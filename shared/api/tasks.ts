import { z } from "zod";
import { NodeId, TaskId } from "../ids.ts";
import { Json } from "../json.ts";
import { TASK_STATES } from "../task-state.ts";
import { type PlannedTaskType, TASKS } from "../tasks/index.ts";

const orderOf = <T extends string, I extends z.ZodType>({ type, input }: { readonly type: T; readonly input: I }) =>
  z.strictObject({ type: z.literal(type), input });

/**
 * An API request for a plan (what a task would do) has `plan: true` beside the task's input, so that a request without these words never asks for a
 * plan.
 */
const planOf = <T extends PlannedTaskType, I extends z.ZodObject>(type: T, input: I) =>
  z.strictObject({ type: z.literal(type), plan: z.literal(true), input });

/**
 * For each task type that can be planned, an operator may order a plan, which says what the task would do and changes nothing. The code does not
 * compile if the table `PLANS` lacks a task type for which a plan can be ordered. The order of a plan has no secret: the plan of
 * `node.hw_sync_reseed` needs no token of MAAS.
 */
const PLANS = {
  "node.drain": planOf("node.drain", TASKS["node.drain"].input.omit({ plan: true })),
  "node.undrain": planOf("node.undrain", TASKS["node.undrain"].input.omit({ plan: true })),
  "node.uninstall": planOf("node.uninstall", TASKS["node.uninstall"].input.omit({ plan: true })),
  "node.hw_sync_reseed": planOf(
    "node.hw_sync_reseed",
    TASKS["node.hw_sync_reseed"].input.omit({ plan: true, machine_token: true }),
  ),
  "node.validate_clean": planOf("node.validate_clean", TASKS["node.validate_clean"].input.omit({ plan: true })),
  "node.gpu_scrub": planOf("node.gpu_scrub", TASKS["node.gpu_scrub"].input.omit({ plan: true })),
  "node.gpu_fill": planOf("node.gpu_fill", TASKS["node.gpu_fill"].input.omit({ plan: true })),
  "node.gpu_challenge": planOf("node.gpu_challenge", TASKS["node.gpu_challenge"].input.omit({ plan: true })),
  "node.storage_cleanup": planOf("node.storage_cleanup", TASKS["node.storage_cleanup"].input.omit({ plan: true })),
  "allocation.grant_user": planOf("allocation.grant_user", TASKS["allocation.grant_user"].input.omit({ plan: true })),
  "allocation.revoke_user": planOf(
    "allocation.revoke_user",
    TASKS["allocation.revoke_user"].input.omit({ plan: true }),
  ),
  // An operator may order `terminal.close` itself and not only its plan, because the task removes nothing and a second run is harmless.
  "terminal.close": z.strictObject({
    type: z.literal("terminal.close"),
    plan: z.boolean(),
    input: TASKS["terminal.close"].input.omit({ plan: true }),
  }),
} satisfies { readonly [T in PlannedTaskType]: z.ZodObject };

/**
 * The tasks that an operator may order by the API: the check of an agent, the close of terminals, and the plan of a task. Except for
 * `terminal.close`, every task that changes a host comes only from the hub's own operations.
 */
export const TaskCreate = z.discriminatedUnion("type", [
  orderOf(TASKS["node.heartbeat_check"]),
  ...Object.values(PLANS),
]);
export type TaskCreate = z.output<typeof TaskCreate>;

export const TaskView = z.strictObject({
  id: TaskId,
  node_id: NodeId,
  type: z.string(),
  /** True if the task is a plan: its result says what the task would do, and the host is unchanged. */
  plan: z.boolean(),
  state: z.enum(TASK_STATES),
  epoch: z.int(),
  attempts: z.int(),
  result: Json.nullable(),
  error_code: z.string().nullable(),
  error_message: z.string().nullable(),
  created_at: z.string(),
  finished_at: z.string().nullable(),
});
export type TaskView = z.output<typeof TaskView>;
