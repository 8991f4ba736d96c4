import { z } from "zod";
import { TaskId } from "../../../shared/ids.ts";
import { DiskLayout } from "../../storage/disk-layout.ts";
import { type DiskJournal, diskJournal, readDiskJournals } from "./disk-journal.ts";

const FOLDER = "var/lib/muster/agent/layout";

/**
 * The journal says what the agent owes to a disk that was mounted before its purge: intact or new file systems at their mount points. The worker
 * process writes each state of the disk to the journal before it begins the work of this state. In the state `unmounting`, the worker process
 * unmounts the disk, and the disk's file systems are intact. In the state `unmounted`, the worker process purges the disk, and the journal of the
 * purge says whether blocks were overwritten. In the state `making`, the purge has ended well, and the worker process makes the partition table and
 * the file systems. In the state `mounting`, the file systems are made, and the worker process mounts them and restores the owner and mode of their
 * root folders. In the state `restored`, the agent owes nothing to the disk.
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

/** Returns the journal entries of all disks that the agent still owes file systems, whichever task wrote them, and unreadable journal files. */
export function unrestoredDisks(root: string): {
  readonly entries: readonly LayoutEntry[];
  readonly unreadable: readonly string[];
} {
  const { entries, unreadable } = readDiskJournals(root, FOLDER, Entry);
  return { entries: entries.filter(({ state }) => state !== "restored"), unreadable };
}
