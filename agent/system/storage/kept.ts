/**
 * When the agent empties a folder, it keeps some entries that the running system needs, but only entries of root. Because the agent keeps only
 * entries of root, a tenant without root rights cannot make an entry that stays. `keep_folder` keeps a folder and removes its content, except root's
 * sockets at which a process listens. `keep_folders` keeps a folder and its subfolders, and removes their other content.
 */
export type Keep = "remove" | "keep" | "keep_folder" | "keep_folders";

export type FolderUse = "temporary" | "scratch";

export interface EntryFacts {
  readonly name: string;
  readonly kind: EntryKind;
  readonly uid: number;
  readonly mode: number;
  readonly isListening: boolean;
}
export type EntryKind = "folder" | "socket" | "other";

/** Folders with the sockets of X servers and input methods, which programs expect after each boot. */
const SOCKET_FOLDERS = [".X11-unix", ".ICE-unix", ".XIM-unix", ".font-unix", ".Test-unix"];
/**
 * The folder with the private temporary folders of snaps, Ubuntu's packages. The private folders of snaps are mounted into running snaps, so the
 * agent keeps these folders in /tmp and removes only their content.
 */
const SNAP_FOLDER = "snap-private-tmp";
/** The folder for the lost files that a file system check finds, which every ext file system expects. */
const LOST_AND_FOUND = "lost+found";
const OPEN_TO_OTHERS = 0o077;

/**
 * Decides whether an entry directly in a folder stays when the agent empties the folder. `bootId` has no dashes, because systemd writes it without
 * dashes into the names of private folders.
 */
export function keepAtTop(use: FolderUse, entry: EntryFacts, bootId: string): Keep {
  if (entry.uid !== 0) return "remove";
  if (entry.kind === "folder" && entry.name === LOST_AND_FOUND) return "keep_folder";
  if (use !== "temporary") return "remove";
  if (entry.kind === "socket") return entry.isListening ? "keep" : "remove";
  if (entry.kind !== "folder") return "remove";
  if (SOCKET_FOLDERS.includes(entry.name)) return "keep_folder";
  const isPrivate = (entry.mode & OPEN_TO_OTHERS) === 0;
  if (entry.name === SNAP_FOLDER && isPrivate) return "keep_folders";
  // A private temporary folder that systemd made in an earlier boot belongs to no running service.
  return isPrivate && entry.name.startsWith(`systemd-private-${bootId}-`) ? "keep" : "remove";
}

/** Decides whether an entry of a kept subfolder stays when the agent empties a folder; `above` is the decision about the subfolder. */
export function keepBelow(above: Keep, entry: EntryFacts): Keep {
  if (entry.uid !== 0) return "remove";
  if (above === "keep_folders" && entry.kind === "folder") return "keep_folders";
  if (above === "keep_folder" && entry.kind === "socket" && entry.isListening) return "keep";
  return "remove";
}

/**
 * True if the agent, when it empties a folder, must read an entry's owner and mode before it can decide whether the entry stays. For most entries of
 * a folder that it empties, the agent decides by name and kind alone whether they stay, which saves a system call.
 */
export const needsLook = (above: Keep, isTop: boolean, name: string, kind: EntryKind): boolean =>
  kind === "socket" ||
  (kind === "folder" &&
    (above === "keep_folders" ||
      (isTop &&
        ([...SOCKET_FOLDERS, SNAP_FOLDER, LOST_AND_FOUND].includes(name) || name.startsWith("systemd-private-")))));
