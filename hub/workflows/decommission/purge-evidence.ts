import { TaskId } from "../../../shared/ids.ts";
import { isPurgeTitle, PURGE_METHODS } from "../../../shared/purge-techniques.ts";
import type { RefusedEvidence } from "../../../shared/sanitization-record.ts";
import type { CleaningStep } from "../../../shared/tasks/cleaning-step.ts";
import { TASKS, type TaskInput } from "../../../shared/tasks/index.ts";
import { readTask } from "../../db/queries/task-reads.ts";
import type { Task } from "../../db/schema/index.ts";
import type { Db, Tx } from "../../db/tx.ts";

type Order = TaskInput<"node.storage_cleanup">;

/** The codes, which never change, for the reasons why the evidence of a purge does not fit the hub's order. */
export type EvidenceRefusal =
  | "not_ordered"
  | "other_serial"
  | "other_task"
  | "other_seed"
  | "other_technique"
  | "other_size"
  | "not_verified";

export interface Refusal {
  readonly code: EvidenceRefusal;
  readonly message: string;
}

/** What the hub knows about the purge of one disk, apart from what the agent reports. */
export interface Ordered {
  readonly order: Order;
  /** The purge order in the earlier task that the evidence names as `adopted_task`, or null if the hub has no such task of the node. */
  readonly adopted: Order | null;
  /** The size of the disk in the host's inventory, in bytes; null if the inventory does not have the disk. */
  readonly bytes: number | null;
}

const namesDisk = ({ disks, disk_pool: pool = [] }: Order, serial: string): boolean =>
  disks.some((one) => one.serial === serial) || pool.includes(serial);

/**
 * Returns why the evidence of a purged disk does not fit the hub's order, or null if the evidence fits. The hub does not believe a purge whose
 * evidence is of another disk, another task or another sample of blocks.
 */
export function refusalOf({ target, evidence }: CleaningStep, { order, adopted, bytes }: Ordered): Refusal | null {
  const refuse = (code: EvidenceRefusal, message: string): Refusal => ({ code, message });
  if (!namesDisk(order, target)) return refuse("not_ordered", "the order does not name this disk");
  if (evidence["media_kind"] !== "disk" || evidence["serial"] !== target)
    return refuse("other_serial", "the evidence is of another disk");
  const isAdopted = evidence["adopted_task"] !== undefined;
  if (isAdopted && (adopted === null || !namesDisk(adopted, target)))
    return refuse("other_task", "the hub knows no earlier task of this node that purged the disk");
  const { sample_seed: seed } = isAdopted && adopted !== null ? adopted : order;
  if (seed === undefined || evidence["sample_seed"] !== seed)
    return refuse("other_seed", "the sample was not drawn by the seed of the order");
  const title = evidence["technique"];
  if (!isPurgeTitle(title) || PURGE_METHODS[title] !== evidence["method"])
    return refuse("other_technique", "the technique is unknown, or its class is another one");
  const [treated, total] = [evidence["bytes_treated"], evidence["bytes_total"]];
  if (typeof treated !== "number" || treated <= 0 || treated !== total)
    return refuse("other_size", "the purge did not treat the whole disk");
  if (bytes !== null && treated < bytes)
    return refuse("other_size", `the purge treated ${treated} bytes of a disk of ${bytes} bytes`);
  if (!evidence["verification"] || !evidence["verification_result"])
    return refuse("not_verified", "the evidence has no sample of blocks");
  return null;
}

/** Returns the purge order in a task's row, or null if the task is no storage cleanup of the node. */
const orderIn = (task: Task | null, nodeId: Task["nodeId"]): Order | null =>
  task === null || task.nodeId !== nodeId || task.type !== "node.storage_cleanup"
    ? null
    : (TASKS["node.storage_cleanup"].input.safeParse(task.input).data ?? null);

/**
 * Returns each disk that the task reports as purged although the evidence does not fit the hub's purge order. If the hub cannot read its purge order
 * any more, each disk that the task reports as purged counts as refused.
 */
export async function refusedPurges(
  db: Db | Tx,
  task: Task,
  steps: readonly CleaningStep[],
  bytes: ReadonlyMap<string, number>,
): Promise<(RefusedEvidence & { readonly code: EvidenceRefusal })[]> {
  const order = orderIn(task, task.nodeId);
  const refused: (RefusedEvidence & { readonly code: EvidenceRefusal })[] = [];
  for (const step of steps) {
    if (step.step !== "disk" || step.outcome !== "ok") continue;
    const earlier = TaskId.safeParse(step.evidence["adopted_task"]);
    const adopted = earlier.success ? orderIn(await readTask(db, earlier.data), task.nodeId) : null;
    const found: Refusal | null =
      order === null
        ? { code: "not_ordered", message: "the hub cannot read its order any more" }
        : refusalOf(step, { order, adopted, bytes: bytes.get(step.target) ?? null });
    if (found !== null) refused.push({ task_id: task.id, target: step.target, ...found });
  }
  return refused;
}
