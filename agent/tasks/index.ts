import type { TaskHandlers } from "../../shared/tasks/index.ts";
import type { System } from "../system/system.ts";
import { grantUser } from "./allocation-grant-user.ts";
import { revokeUser } from "./allocation-revoke-user.ts";
import { drain } from "./drain.ts";
import { gpuChallenge } from "./gpu-challenge.ts";
import { gpuFill } from "./gpu-fill.ts";
import { gpuScrub } from "./gpu-scrub.ts";
import { heartbeatCheck } from "./heartbeat-check.ts";
import { hwSyncReseed } from "./hw-sync-reseed.ts";
import { sampleDisks } from "./sample-disks.ts";
import { type RecordEvidence, signRecord } from "./sign-record.ts";
import { storageCleanup } from "./storage-cleanup.ts";
import { terminalClose } from "./terminal-close.ts";
import { undrain } from "./undrain.ts";
import { uninstall } from "./uninstall.ts";
import { validateClean } from "./validate-clean.ts";

export const handlersFor = (system: System, evidence: RecordEvidence): TaskHandlers => ({
  "node.hw_sync_reseed": hwSyncReseed(system),
  "node.heartbeat_check": heartbeatCheck(system),
  "node.drain": drain(system),
  "node.undrain": undrain(system),
  "node.uninstall": uninstall(system),
  "node.sign_record": signRecord(system, evidence),
  "allocation.grant_user": grantUser(system),
  "allocation.revoke_user": revokeUser(system),
  "terminal.close": terminalClose(system),
  "node.validate_clean": validateClean(system),
  "node.gpu_scrub": gpuScrub(system),
  "node.gpu_fill": gpuFill(system),
  "node.gpu_challenge": gpuChallenge(system),
  "node.storage_cleanup": storageCleanup(system),
  "node.sample_disks": sampleDisks(system),
});
