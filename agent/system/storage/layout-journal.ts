import { z } from "zod";
import { TaskId } from "../../../shared/ids.ts";
import { DiskLayout } from "../../storage/disk-layout.ts";
import { type DiskJournal, diskJournal, readDiskJournals } from "./disk-journal.ts";

const FOLDER = "var/lib/muster/agent/layout";

/**
 * The journal says what the agent owes to a disk that was mounted before its purge: intact or new file systems at their mount points. The worker
 * process writes each state to the journal before it begins the state's work:
 *
 * - `unmounting`: the worker process unmounts the disk. In the state `unmounting`, the disk's file systems are intact.
 * - `unmounted`: the worker process purges the disk next. The journal of the purge says whether the worker process has overwritten blocks.
 * - `making`: the purge of the disk ended well. The worker process makes the partition table and the file systems.
 * - `mounting`: the worker process has made the file systems. The worker process mounts the file systems and restores the owner and mode of their root folders.
 * - `restored`: the agent owes nothing to the disk.
 */
const Entry = z.strictObject({
  format: z.literal("muster-layout/1"),
  serial: z.string(),
  task_id: TaskId,
  state: z.enum(["unmounting", "unmounted", "making", "mounting", "restored"]),
  /** `is_intact` is false as soon as a purge may have overwritten the disk's file systems. */
  is_intact: z.boolean(),
  /** The disk's device name at the time of the entry, for the message to an operator. */
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

/** Returns the journal entries of all disks that the agent still owes file systems, whichever task wrote them, and unreadable journal files. */
export function unrestoredDisks(root: string): {
  readonly entries: readonly LayoutEntry[];
  readonly unreadable: readonly string[];
} {
  const { entries, unreadable } = readDiskJournals(root, FOLDER, Entry);
  return { entries: entries.filter(({ state }) => state !== "restored"), unreadable };
}
