import type { z } from "zod";
import type { WorkRun } from "../workers/define-work.ts";
import { layoutJournal } from "./layout-journal.ts";
import { PURGE_TIMING, type PurgeTiming, purgeDisk } from "./purge-disk.ts";
import { restoreDisk } from "./restore-disk.ts";
import type { PURGE_DISK, PurgeEnd } from "./works.ts";

/**
 * After the purge of a data disk, its file systems come back to their mount points. The worker process unmounts a mounted disk just before the disk's
 * purge. The agent keeps a journal of the disk's purge and a journal of its file systems, so that a later worker process of the same task continues
 * the work.
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
    // The agent stopped the purge before its end. After a purge that was stopped before its end, `restoreDisk` only mounts file systems that are
    // still intact.
    await restoreDisk(run, input);
    throw error;
  }
  const layout = layoutJournal(run.root, input.serial).read();
  if (!layout.ok) return end.outcome === "ok" ? unreadableLayout(end, layout.detail) : end;
  const file_systems = await restoreDisk(run, input);
  return file_systems.length === 0 ? end : { ...end, file_systems };
}

/** If the journal cannot say whether the disk had file systems, the purge counts as failed, because the host may lack them now. */
function unreadableLayout({ evidence, ...end }: PurgeEnd, detail: string): PurgeEnd {
  const { method: _none, ...rest } = evidence;
  return { ...end, outcome: "failed", message: detail, evidence: { ...rest, reason: "journal_unreadable" } };
}
