import type { Task } from "../../hub/db/schema/index.ts";
import { RESIDUE_ITEM_NAMES } from "../../shared/residue/items.ts";
import type { ResidueSnapshot } from "../../shared/residue/snapshot.ts";
import type { TaskInput, TaskResult, TaskType } from "../../shared/tasks/index.ts";
import { signed } from "./signing-agent.ts";

/** A host on which no item has an entry. */
export const EMPTY_SNAPSHOT: ResidueSnapshot = Object.fromEntries(
  RESIDUE_ITEM_NAMES.map((item) => [item, { entries: [] }]),
);

const done = <S extends string>(step: S, target: string) =>
  ({ step, target, outcome: "ok", message: "done", evidence: {} }) as const;

/** What an agent of a clean host reports for the tasks of a turnover. */
const RESULTS: { readonly [T in TaskType]?: TaskResult<T> } = {
  "allocation.revoke_user": { uid: 30_001, steps: [done("account", "alice")] },
  "node.storage_cleanup": { steps: [done("temporary", "/tmp")] },
  "node.gpu_scrub": { steps: [done("gpu_verify", "gpu 1")], needs: "none", boot_id: "boot" },
  "node.validate_clean": { boot_id: "boot", snapshot: EMPTY_SNAPSHOT },
};

/** The result of a task on a clean host, or null for a task whose result no stage reads. */
export const resultOnCleanHost = ({ type, nodeId, input }: Pick<Task, "type" | "nodeId" | "input">): unknown =>
  type === "node.sign_record"
    ? signed(nodeId, input as TaskInput<"node.sign_record">)
    : (RESULTS[type as TaskType] ?? null);
