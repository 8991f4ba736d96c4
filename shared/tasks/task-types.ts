/**
 * A task has one of two lanes, `work` or `look`, which are queues of a node's tasks. Tasks in the lane `work` change the host or take long. Tasks in
 * the lane `look` only read and take no noticeable time. On each node, at most one task of the queue (lane) `work` and one task of the queue `look`
 * run at a time. Because of the two lanes, a short task that only reads never waits behind a long task.
 */
export type TaskLane = "work" | "look";

/**
 * What the agent must know of each task type while it is idle. Because the schemas of a task type take memory, the agent loads them only when it gets
 * an order of that type.
 */
interface TaskTypeRow<Spec> {
  readonly lane: TaskLane;
  /**
   * If `effectOnceAccepted` is true, the task takes effect only after the hub has accepted its result. If the hub cancels a task with
   * `effectOnceAccepted` before it has accepted the result, the task has no effect, even after a success.
   */
  readonly effectOnceAccepted?: boolean;
  /**
   * If `worksOutside` is true, the task's work runs outside the agent's process (decision C6) and continues when the agent stops. After a restart,
   * the agent calls the handler of a task with `worksOutside` once more with the task's input. A handler that the restarted agent calls again finds
   * the work still running, or its result.
   */
  readonly worksOutside?: boolean;
  /** Loads the task type's schemas and errors. */
  load(): Promise<Spec>;
}

const row = <Spec>(given: TaskTypeRow<Spec>): TaskTypeRow<Spec> => given;

/** The catalogue of task types contains no shell task and no remote script on purpose (lifecycle 2.4). */
export const TASK_TYPES = {
  "node.hw_sync_reseed": row({ lane: "work", load: async () => (await import("./hw-sync-reseed.ts")).hwSyncReseed }),
  "node.heartbeat_check": row({
    lane: "look",
    load: async () => (await import("./heartbeat-check.ts")).heartbeatCheck,
  }),
  "node.check_hardware": row({
    lane: "work",
    load: async () => (await import("./check-hardware.ts")).checkHardware,
  }),
  "node.drain": row({ lane: "work", load: async () => (await import("./drain.ts")).drain }),
  "node.undrain": row({ lane: "work", load: async () => (await import("./undrain.ts")).undrain }),
  "node.uninstall": row({
    lane: "work",
    effectOnceAccepted: true,
    load: async () => (await import("./uninstall.ts")).uninstall,
  }),
  "node.sign_record": row({ lane: "look", load: async () => (await import("./sign-record.ts")).signRecord }),
  "allocation.grant_user": row({
    lane: "work",
    load: async () => (await import("./allocation-grant-user.ts")).grantUser,
  }),
  "allocation.revoke_user": row({
    lane: "work",
    load: async () => (await import("./allocation-revoke-user.ts")).revokeUser,
  }),
  "terminal.close": row({ lane: "work", load: async () => (await import("./terminal-close.ts")).terminalClose }),
  "node.validate_clean": row({ lane: "work", load: async () => (await import("./validate-clean.ts")).validateClean }),
  "node.gpu_scrub": row({
    lane: "work",
    worksOutside: true,
    load: async () => (await import("./gpu-scrub.ts")).gpuScrub,
  }),
  "node.gpu_fill": row({ lane: "work", worksOutside: true, load: async () => (await import("./gpu-fill.ts")).gpuFill }),
  "node.gpu_challenge": row({ lane: "work", load: async () => (await import("./gpu-challenge.ts")).gpuChallenge }),
  "node.storage_cleanup": row({
    lane: "work",
    worksOutside: true,
    load: async () => (await import("./storage-cleanup.ts")).storageCleanup,
  }),
  "node.sample_disks": row({
    lane: "work",
    worksOutside: true,
    load: async () => (await import("./sample-disks.ts")).sampleDisks,
  }),
} as const;

export type TaskType = keyof typeof TASK_TYPES;

export const isTaskType = (type: string): type is TaskType => Object.hasOwn(TASK_TYPES, type);
