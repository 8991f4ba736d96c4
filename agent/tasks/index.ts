import type { TaskHandlers } from "../../shared/tasks/index.ts";
import type { HealthWatch } from "../health/watch.ts";
import type { System } from "../system/system.ts";
import type { RecordEvidence } from "./sign-record.ts";

/** An idle agent does not load the code of tasks, to save memory. The agent loads a task's code when the hub first orders the task. */
const loadedBy =
  <Input, Run, Reply>(load: () => Promise<(input: Input, run: Run) => Promise<Reply>>) =>
  async (input: Input, run: Run): Promise<Reply> =>
    (await load())(input, run);

export const handlersFor = (
  system: System,
  evidence: RecordEvidence,
  health: Pick<HealthWatch, "adopt" | "beforeInventory">,
): TaskHandlers => ({
  "node.hw_sync_reseed": loadedBy(async () => (await import("./hw-sync-reseed.ts")).hwSyncReseed(system)),
  "node.heartbeat_check": loadedBy(async () => (await import("./heartbeat-check.ts")).heartbeatCheck(system)),
  "node.check_hardware": loadedBy(async () => (await import("./check-hardware.ts")).checkHardware(system, health)),
  "node.drain": loadedBy(async () => (await import("./drain.ts")).drain(system)),
  "node.undrain": loadedBy(async () => (await import("./undrain.ts")).undrain(system)),
  "node.uninstall": loadedBy(async () => (await import("./uninstall.ts")).uninstall(system)),
  "node.sign_record": loadedBy(async () => (await import("./sign-record.ts")).signRecord(system, evidence)),
  "allocation.grant_user": loadedBy(async () => (await import("./allocation-grant-user.ts")).grantUser(system)),
  "allocation.revoke_user": loadedBy(async () => (await import("./allocation-revoke-user.ts")).revokeUser(system)),
  "terminal.close": loadedBy(async () => (await import("./terminal-close.ts")).terminalClose(system)),
  "node.validate_clean": loadedBy(async () => (await import("./validate-clean.ts")).validateClean(system)),
  "node.gpu_scrub": loadedBy(async () => (await import("./gpu-scrub.ts")).gpuScrub(system)),
  "node.gpu_fill": loadedBy(async () => (await import("./gpu-fill.ts")).gpuFill(system)),
  "node.gpu_challenge": loadedBy(async () => (await import("./gpu-challenge.ts")).gpuChallenge(system)),
  "node.storage_cleanup": loadedBy(async () => (await import("./storage-cleanup.ts")).storageCleanup(system)),
  "node.sample_disks": loadedBy(async () => (await import("./sample-disks.ts")).sampleDisks(system)),
});
