import { z } from "zod";
import { TaskId } from "../../../shared/ids.ts";
import { DiskLayout } from "../../storage/disk-layout.ts";
import { type DiskJournal, diskJournal, readDiskJournals } from "./disk-journal.ts";

const FOLDER = "var/lib/muster/agent/layout";

/**
 * What the agent owes to a disk that was mounted before its purge. The worker writes each state before it begins the state's work:
 *
 * - `unmounting`: the worker unmounts. The file systems are intact.
 * - `unmounted`: the purge follows. The journal of the purge says whether the worker has overwritten blocks.
 * - `making`: the purge ended well. The worker makes the partition table and the file systems.
 * - `mounting`: the file systems are made. The worker mounts them and restores their root folders.
 * - `restored`: nothing is owed.
 */
const Entry = z.strictObject({
  format: z.literal("muster-layout/1"),
  serial: z.string(),
  task_id: TaskId,
  state: z.enum(["unmounting", "unmounted", "making", "mounting", "restored"]),
  /** False as soon as a purge may have overwritten the file systems. */
  is_intact: z.boolean(),
  /** The name of the disk when the entry was written, for the message to an operator. */
  device: z.string(),
  layout: DiskLayout,
});
export type LayoutEntry = z.output<typeof Entry>;
export type LayoutJournal = DiskJournal<LayoutEntry>;

export const layoutJournal = (root: string, serial: string): LayoutJournal =>
  diskJournal(
    root,
    FOLDER,
    Entry,
    serial,
    "The file systems that the disk had before its purge are unknown. Make and mount them by hand",
  );

/** The entries of all disks that are not restored, whichever task wrote them, and the files that cannot be read. */
export function unrestoredDisks(root: string): {
  readonly entries: readonly LayoutEntry[];
  readonly unreadable: readonly string[];
} {
  const { entries, unreadable } = readDiskJournals(root, FOLDER, Entry);
  return { entries: entries.filter(({ state }) => state !== "restored"), unreadable };
}
