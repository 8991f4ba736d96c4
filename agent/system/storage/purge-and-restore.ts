import type { z } from "zod";
import type { WorkRun } from "../workers/define-work.ts";
import { layoutJournal } from "./layout-journal.ts";
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
  if (input.restore_only) {
    const message = "A worker process was lost, and this one only restores the file systems.";
    return { outcome: "failed", message, evidence: {}, file_systems: await restoreDisk(run, input) };
  }
  let end: PurgeEnd;
  try {
    end = await purgeDisk(input, run, timing);
  } catch (error) {
    // The purge was stopped. `restoreDisk` only mounts file systems that are intact, because the purge did not end.
    await restoreDisk(run, input);
    throw error;
  }
  const layout = layoutJournal(run.root, input.serial).read();
  if (!layout.ok) return end.outcome === "ok" ? unreadableLayout(end, layout.detail) : end;
  const file_systems = await restoreDisk(run, input);
  return file_systems.length === 0 ? end : { ...end, file_systems };
}

/** A purge that ended well fails if nobody knows whether the disk had file systems, because the host may lack them now. */
function unreadableLayout({ evidence, ...end }: PurgeEnd, detail: string): PurgeEnd {
  const { method: _none, ...rest } = evidence;
  return { ...end, outcome: "failed", message: detail, evidence: { ...rest, reason: "journal_unreadable" } };
}
