import type { TaskType } from "../../../shared/tasks/index.ts";

/** After the hub has queued a task of a type in `CLEANING_TASKS`, only a finished turnover shows that the host is clean. */
export const CLEANING_TASKS: readonly TaskType[] = [
  "allocation.revoke_user",
  "node.storage_cleanup",
  "node.gpu_scrub",
  "node.gpu_fill",
];
