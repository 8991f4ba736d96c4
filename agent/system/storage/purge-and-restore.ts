import type { z } from "zod";
import type { WorkRun } from "../workers/define-work.ts";
import { PURGE_TIMING, type PurgeTiming, purgeDisk } from "./purge-disk.ts";
import { restoreDisk } from "./restore-disk.ts";
import type { PURGE_DISK, PurgeEnd } from "./works.ts";

/**
 * Purges one data disk, and brings its file systems back to their places. A mounted disk is unmounted just before its purge. The state of the disk is in
 * two journals, so that a later worker process of the same task continues where this one ends.
 */
export async function purgeAndRestore(
  input: z.output<typeof PURGE_DISK.input>,
  run: WorkRun,
  timing: PurgeTiming = PURGE_TIMING,
): Promise<PurgeEnd> {
  let end: PurgeEnd;
  try {
    end = await purgeDisk(input, run, timing);
  } catch (error) {
    // The purge was stopped. `restoreDisk` only mounts file systems that are intact, because the purge did not end.
    await restoreDisk(run, input);
    throw error;
  }
  const file_systems = await restoreDisk(run, input);
  return file_systems.length === 0 ? end : { ...end, file_systems };
}
