/** SQL about the types of tasks: how long a lease is, and which tasks destroy data. */
import { TASKS, type TaskType } from "../../../shared/tasks/index.ts";
import { TASK_TYPES } from "../../../shared/tasks/task-types.ts";
import { notInArray, sql } from "../orm.ts";
import { tasks } from "../schema/index.ts";

const specs = Object.values(TASKS);
/**
 * For each task type, the SQL has a row with the length of the lease, the flag `destructive` and the lane: `work`, or `look` for short tasks that
 * only read. An agent runs at most one task that changes the host or takes long (lane `work`) and one short task that only reads (lane `look`) at a
 * time.
 */
const catalogue = sql`unnest(${sql.param(specs.map((spec) => spec.type))}::text[], ${sql.param(specs.map((spec) => spec.leaseSeconds))}::int[], ${sql.param(specs.map((spec) => spec.destructive))}::boolean[], ${sql.param(specs.map((spec) => TASK_TYPES[spec.type].lane))}::text[]) as c(type, lease_seconds, destructive, lane)`;
/**
 * A task whose type this hub does not know, e.g. a type of a newer hub, gets a lease of 60 seconds. Without a lease, an agent that died would hold
 * its task for ever.
 */
export const leaseFromNow = sql`now() + make_interval(secs => coalesce((select c.lease_seconds from ${catalogue} where c.type = ${tasks.type}), 60))`;
export const isDestructive = sql`coalesce((select c.destructive from ${catalogue} where c.type = ${tasks.type}), true)`;
/** A task whose type this hub does not know runs in the lane `work`, like every task that changes the host. */
export const laneIn = (alias: string) =>
  sql`coalesce((select c.lane from ${catalogue} where c.type = ${sql.identifier(alias)}.type), 'work')`;
/** True for each task `h` that an agent holds on the same node as the task `alias`, if both are in the lane `work` or both in the lane `look`. */
export const inHand = (alias: string) =>
  sql`h.node_id = ${sql.identifier(alias)}.node_id and h.state in ('offered', 'running', 'cancelling') and ${laneIn("h")} = ${laneIn(alias)}`;

const GRANT = "allocation.grant_user" satisfies TaskType;

/**
 * After a restore of the database, no agent may carry a task out again that destroys data or gives a tenant an account, because the host may have
 * another tenant since. A task type that this hub does not know counts as a type whose tasks must not be repeated.
 */
export const mustNotRepeat = notInArray(
  tasks.type,
  (Object.keys(TASKS) as TaskType[]).filter((type) => !TASKS[type].destructive && type !== GRANT),
);
