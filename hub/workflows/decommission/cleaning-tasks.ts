import type { TaskType } from "../../../shared/tasks/index.ts";

/** After the hub has queued a task of a type in `CLEANING_TASKS`, only a finished cleaning between tenants (turnover) proves a clean host. */
export const CLEANING_TASKS: readonly TaskType[] = [
  "allocation.revoke_user",
  "node.storage_cleanup",
  "node.gpu_scrub",
  "node.gpu_fill",
];
