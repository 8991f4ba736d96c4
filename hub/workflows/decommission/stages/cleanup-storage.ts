import { failure } from "../../../../shared/failures.ts";
import type { AgentWork } from "../agent-work.ts";
import { cleaningStage } from "../cleaning-stage.ts";
import { failedSteps, tally } from "../cleaning-steps.ts";
import type { DecommissionContext, DecommissionStageOf } from "../decommission-context.ts";

/** The agent has this many seconds to empty the folders to which tenants write. */
const EMPTY_SECONDS = 6 * 3_600;
/**
 * The agent has this many seconds to overwrite the free space of one file system. To overwrite the free space of a disk of 30 TB, the agent needs
 * half a day.
 */
const FILL_SECONDS = 24 * 3_600;

/** Each folder that the agent empties may be on a file system of its own. Two of the folders that the agent empties are `/tmp` and `/var/tmp`. */
function cleanupSeconds({ profile }: DecommissionContext): number {
  if (profile?.clearFreeSpace !== true) return EMPTY_SECONDS;
  return EMPTY_SECONDS + FILL_SECONDS * (2 + profile.scratchFolders.length + profile.dataShares.length);
}

const CLEANUP: AgentWork<"node.storage_cleanup"> = {
  type: "node.storage_cleanup",
  undoneBy: null,
  input: ({ input, profile }) => ({
    scope: input.storage_cleanup === "none" ? "all" : input.storage_cleanup,
    temporary: true,
    scratch: profile?.scratchFolders ?? [],
    shares: profile?.dataShares ?? [],
    free_space: profile?.clearFreeSpace ?? false,
    weka_prefixes: profile?.wekaPrefixes ?? [],
    // A soft reset empties folders and erases no disks. For a reimage, MAAS erases the disks.
    disks: [],
    plan: false,
  }),
  workSeconds: cleanupSeconds,
  isAskedFor: () => true,
  failed: (context, task, evidence) =>
    failure(
      "upstream_transient",
      "cleaning_failed",
      `The storage of ${context.node.hostname} was not cleaned: ${task.errorMessage ?? `the task is ${task.state}`}`,
      evidence,
    ),
  waitsFor: () => "The agent to clean the storage",
};

/** Empties the folders that tenants write to, and unmounts tenants' Weka file systems (lifecycle 5.5). */
export const cleanupStorage: DecommissionStageOf<"cleanup_storage"> = cleaningStage({
  name: "cleanup_storage",
  title: "Have the agent clean the storage that tenants write to",
  work: CLEANUP,
  nothingToDo: ({ input }) => (input.storage_cleanup === "none" ? "The request asks for no storage cleanup" : null),
  decide: (context, { steps }, task) => {
    const failed = failedSteps(context, steps, task);
    if (failed !== null) return { kind: "failed", failure: failed };
    return { kind: "done", message: `The storage is clean: ${tally(steps)}`, details: { task_id: task.id } };
  },
});
