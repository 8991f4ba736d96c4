/**
 * What the emptying of a folder keeps, because the running system needs it. A tenant without root cannot make an entry that is kept: an entry is kept
 * only if it belongs to root. `keep_folder` keeps the folder and removes its content. `keep_folders` also keeps the folders below it.
 */
export type Keep = "remove" | "keep" | "keep_folder" | "keep_folders";

export type FolderUse = "temporary" | "scratch";

/** The facts about an entry that decide whether it is kept. */
export interface EntryFacts {
  readonly name: string;
  readonly kind: EntryKind;
  readonly uid: number;
  readonly mode: number;
  /** Whether the entry is a socket at which a running process listens. */
  readonly isListening: boolean;
}
export type EntryKind = "folder" | "socket" | "other";

/** The folders of the sockets of X servers and input methods. Programs expect that these folders exist after the boot. */
const SOCKET_FOLDERS = [".X11-unix", ".ICE-unix", ".XIM-unix", ".font-unix", ".Test-unix"];
/** The folder of the private temporary folders of snaps. The folders in it are mounted into running snaps, so they stay, but empty. */
const SNAP_FOLDER = "snap-private-tmp";
/** The folder in which a file system check puts files that it found. Every ext file system expects that this folder exists. */
const LOST_AND_FOUND = "lost+found";
const OPEN_TO_OTHERS = 0o077;

/** Whether an entry directly in an emptied folder is kept. `bootId` has no dashes, as systemd writes it into the names of private folders. */
export function keepAtTop(use: FolderUse, entry: EntryFacts, bootId: string): Keep {
  if (entry.uid !== 0) return "remove";
  if (entry.kind === "folder" && entry.name === LOST_AND_FOUND) return "keep_folder";
  if (use !== "temporary") return "remove";
  if (entry.kind === "socket") return entry.isListening ? "keep" : "remove";
  if (entry.kind !== "folder") return "remove";
  if (SOCKET_FOLDERS.includes(entry.name)) return "keep_folder";
  const isPrivate = (entry.mode & OPEN_TO_OTHERS) === 0;
  if (entry.name === SNAP_FOLDER && isPrivate) return "keep_folders";
  // A private folder of an earlier boot belongs to no running service.
  return isPrivate && entry.name.startsWith(`systemd-private-${bootId}-`) ? "keep" : "remove";
}

/** Whether an entry in a folder that itself is kept is kept too. */
export function keepBelow(above: Keep, entry: EntryFacts): Keep {
  if (entry.uid !== 0) return "remove";
  if (above === "keep_folders" && entry.kind === "folder") return "keep_folders";
  if (above === "keep_folder" && entry.kind === "socket" && entry.isListening) return "keep";
  return "remove";
}

/** Whether the decision about an entry needs a look at its owner. Most entries need none, which saves a call for each. */
export const needsLook = (above: Keep, isTop: boolean, name: string, kind: EntryKind): boolean =>
  kind === "socket" ||
  (kind === "folder" &&
    (above === "keep_folders" ||
      (isTop &&
        ([...SOCKET_FOLDERS, SNAP_FOLDER, LOST_AND_FOUND].includes(name) || name.startsWith("systemd-private-")))));
