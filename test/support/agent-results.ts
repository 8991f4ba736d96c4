import type { Task } from "../../hub/db/schema/index.ts";
import { SAMPLE_BLOCK_BYTES } from "../../shared/gpu-memory.ts";
import { RESIDUE_ITEM_NAMES } from "../../shared/residue/items.ts";
import type { ResidueSnapshot } from "../../shared/residue/snapshot.ts";
import type { TaskInput, TaskResult, TaskType } from "../../shared/tasks/index.ts";
import { answerChallenge, fillMemory, memoryUuid } from "./gpu-memory-agent.ts";
import { signed } from "./signing-agent.ts";

export const EMPTY_SNAPSHOT: ResidueSnapshot = Object.fromEntries(
  RESIDUE_ITEM_NAMES.map((item) => [item, { entries: [] }]),
);

const done = <S extends string>(step: S, target: string) =>
  ({ step, target, outcome: "ok", message: "done", evidence: {} }) as const;

export function resetOf(count: number): TaskResult<"node.gpu_scrub"> {
  const host = (["gpu_services_stop", "gpu_holders", "gpu_services_start"] as const).map((step) => done(step, "host"));
  const gpus = Array.from({ length: count }, (_, number) => {
    const tail = number.toString(16).padStart(2, "0");
    const address = `0000:${tail}:00.0`;
    const evidence = { uuid: memoryUuid(number), memory_total_mib: SAMPLE_BLOCK_BYTES / 2 ** 20 };
    return [done("gpu_reset", address), { ...done("gpu_verify", address), evidence }];
  });
  return { steps: [...host, ...gpus.flat()], needs: "none", boot_id: "boot" };
}

const RESULTS: { readonly [T in TaskType]?: TaskResult<T> } = {
  "allocation.grant_user": { uid: 30_001, steps: [done("account", "alice")] },
  "allocation.revoke_user": { uid: 30_001, steps: [done("account", "alice")], root_by: [] },
  "node.storage_cleanup": { steps: [done("temporary", "/tmp")] },
  "node.sample_disks": { boot_id: "boot", disks: [], more: 0 },
  "node.validate_clean": { boot_id: "boot", snapshot: EMPTY_SNAPSHOT },
};

/** Returns the agent's result of a task on a clean host, or null for a task whose result no stage reads. */
export function resultOnCleanHost({
  id,
  type,
  nodeId,
  input,
}: Pick<Task, "id" | "type" | "nodeId" | "input">): unknown {
  if (type === "node.sign_record") return signed(nodeId, input as TaskInput<"node.sign_record">);
  if (type === "node.gpu_scrub") return resetOf((input as TaskInput<"node.gpu_scrub">).expected_gpus);
  if (type === "node.gpu_fill") return fillMemory(id, input as TaskInput<"node.gpu_fill">);
  if (type === "node.gpu_challenge") return answerChallenge(input as TaskInput<"node.gpu_challenge">);
  return RESULTS[type as TaskType] ?? null;
}
