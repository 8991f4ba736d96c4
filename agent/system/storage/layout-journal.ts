import { z } from "zod";
import { TaskId } from "../../../shared/ids.ts";
import { DiskLayout } from "../../storage/disk-layout.ts";
import { type DiskJournal, diskJournal, readDiskJournals } from "./disk-journal.ts";

const FOLDER = "var/lib/muster/agent/layout";

/**
 * The journal of a disk that was mounted before its purge says how far the agent is in giving the disk back its intact or newly made file systems,
 * mounted at their mount points. The worker process writes the disk's next state to the disk's journal before it begins the work of this state. In
 * the disk journal's state `unmounting`, the worker process unmounts the disk before the purge, and the disk's file systems are intact. In the disk
 * journal's state `unmounted`, the worker process purges the disk, and the separate journal of the purge says whether blocks were overwritten. In the
 * disk journal's state `making`, the disk's purge has ended well, and the worker process makes the partition table and the file systems. In the disk
 * journal's state `mounting`, the file systems of the purged disk are made, and the worker process mounts them and restores the owner and mode of
 * their root folders. In the disk journal's state `restored`, the agent has nothing left to restore on the disk.
 */
const Entry = z.strictObject({
  format: z.literal("muster-layout/1"),
  serial: z.string(),
  task_id: TaskId,
  state: z.enum(["unmounting", "unmounted", "making", "mounting", "restored"]),
  /** `is_intact` is false as soon as a purge may have overwritten the disk's file systems. */
  is_intact: z.boolean(),
  /** The disk's device name when the worker process wrote the journal entry, for the message to an operator. */
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

/**
 * Returns the journal entries of all disks whose file systems the agent must still restore, whichever task wrote the entries, and the unreadable
 * journal files.
 */
export function unrestoredDisks(root: string): {
  readonly entries: readonly LayoutEntry[];
  readonly unreadable: readonly string[];
} {
  const { entries, unreadable } = readDiskJournals(root, FOLDER, Entry);
  return { entries: entries.filter(({ state }) => state !== "restored"), unreadable };
}
