import { randomBytes } from "node:crypto";
import { failure } from "../../../../shared/failures.ts";
import type { AgentWork } from "../agent-work.ts";
import { cleaningStage } from "../cleaning-stage.ts";
import { failedSteps, notCleaned, tally } from "../cleaning-steps.ts";
import type { DecommissionStageOf } from "../decommission-context.ts";
import { readKnownDisks } from "../known-disks.ts";
import { refusedPurges } from "../purge-evidence.ts";
import { expectedDisks, storageOrder, storageSeconds } from "../storage-order.ts";

const CLEANUP: AgentWork<"node.storage_cleanup"> = {
  type: "node.storage_cleanup",
  undoneBy: null,
  input: async ({ input, profile, node }, tx) =>
    storageOrder(input, profile, randomBytes(32).toString("hex"), (await readKnownDisks(tx, node)).serials),
  workSeconds: ({ input, profile }) => storageSeconds(input, profile),
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

/**
 * Has the agent empty tenants' folders, unmount tenants' Weka file systems, and purge the data disks that the profile lists (lifecycle 5.5). In a
 * reimage, MAAS and not the agent erases the disks.
 */
export const cleanupStorage: DecommissionStageOf<"cleanup_storage"> = cleaningStage({
  name: "cleanup_storage",
  title: "Have the agent clean the storage that tenants write to",
  work: CLEANUP,
  nothingToDo: ({ input }) => (input.storage_cleanup === "none" ? "The request asks for no storage cleanup" : null),
  cancelLeaves: ({ input, profile }) =>
    expectedDisks(input, profile, new Set(profile?.purgeDisks)).length === 0
      ? ""
      : ". A security erase that had begun may leave the password MusterErase on a SATA disk. The error of the task then names the disk and the commands that remove the password",
  decide: async (context, { steps }, task) => {
    const failed = failedSteps(context, steps, task);
    if (failed !== null) return { kind: "failed", failure: failed };
    const { input, profile, node, services } = context;
    const known = await readKnownDisks(services.db, node);
    const missing = expectedDisks(input, profile, known.serials).filter(
      (serial) => !steps.some(({ step, target }) => step === "disk" && target === serial),
    );
    const refused = await refusedPurges(services.db, task, steps, known.bytes);
    const reasons = [
      ...missing.map((serial) => `disk ${serial}: not_found, the agent reports no step for this disk`),
      ...refused.map(
        ({ target, code, message }) => `disk ${target}: ${code}, the purge is not accepted because ${message}`,
      ),
    ];
    if (reasons.length > 0) return { kind: "failed", failure: notCleaned(context, reasons, task) };
    return { kind: "done", message: `The storage is clean: ${tally(steps)}`, details: { task_id: task.id } };
  },
});
