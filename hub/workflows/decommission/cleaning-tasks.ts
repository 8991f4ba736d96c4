import type { TaskType } from "../../../shared/tasks/index.ts";

/** The tasks of a turnover that change the host. Once one of them was queued, only a finished turnover shows that the host is clean. */
export const CLEANING_TASKS: readonly TaskType[] = ["allocation.revoke_user", "node.storage_cleanup", "node.gpu_scrub"];
