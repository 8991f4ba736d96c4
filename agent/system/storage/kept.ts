/**
 * What the emptying of a folder does with an entry, which is a file or subfolder. The emptying keeps some entries, because the running system needs
 * them. The emptying keeps an entry only if the entry belongs to root, so a tenant without root rights cannot make an entry that stays. The value
 * `keep_folder` keeps a folder and removes the folder's content. The value `keep_folders` keeps a folder and its subfolders, and removes their other
 * content.
 */
export type Keep = "remove" | "keep" | "keep_folder" | "keep_folders";

export type FolderUse = "temporary" | "scratch";

/** The facts about a folder's entry that decide whether the emptying of the folder keeps the entry. */
export interface EntryFacts {
  readonly name: string;
  readonly kind: EntryKind;
  readonly uid: number;
  readonly mode: number;
  /** Whether the entry is a socket at which a running process listens. */
  readonly isListening: boolean;
}
export type EntryKind = "folder" | "socket" | "other";

/**
 * The names of folders with the sockets of X servers and input methods. Programs expect that each folder in SOCKET_FOLDERS exists after each boot.
 */
const SOCKET_FOLDERS = [".X11-unix", ".ICE-unix", ".XIM-unix", ".font-unix", ".Test-unix"];
/**
 * The name of the folder with the private temporary folders of snaps, which are Ubuntu's packages. The private temporary folders are mounted into
 * running snaps, so the emptying of `/tmp` keeps the private folders and removes their content.
 */
const SNAP_FOLDER = "snap-private-tmp";
/**
 * The name of the folder into which a file system check puts the lost files that it finds. Every ext file system expects that the folder `lost+found`
 * exists.
 */
const LOST_AND_FOUND = "lost+found";
const OPEN_TO_OTHERS = 0o077;

/**
 * Decides whether the emptying of a folder keeps or removes an entry directly in that folder. The argument `bootId` has no dashes, because systemd
 * writes the boot id without dashes into the names of private folders.
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
  // systemd makes private folders for services: a private folder of an earlier boot belongs to no running service.
  return isPrivate && entry.name.startsWith(`systemd-private-${bootId}-`) ? "keep" : "remove";
}

/**
 * Decides whether the emptying keeps or removes an entry of a kept subfolder. The argument `above` is the decision about the kept subfolder that
 * contains the entry.
 */
export function keepBelow(above: Keep, entry: EntryFacts): Keep {
  if (entry.uid !== 0) return "remove";
  if (above === "keep_folders" && entry.kind === "folder") return "keep_folders";
  if (above === "keep_folder" && entry.kind === "socket" && entry.isListening) return "keep";
  return "remove";
}

/**
 * Whether the emptying must read the owner and mode of a folder's entry to decide whether the entry stays. The name and kind of most entries decide
 * whether the entry stays, which saves one system call for each such entry.
 */
export const needsLook = (above: Keep, isTop: boolean, name: string, kind: EntryKind): boolean =>
  kind === "socket" ||
  (kind === "folder" &&
    (above === "keep_folders" ||
      (isTop &&
        ([...SOCKET_FOLDERS, SNAP_FOLDER, LOST_AND_FOUND].includes(name) || name.startsWith("systemd-private-")))));
