import { readFile } from "node:fs/promises";
import { join } from "node:path";

export interface Mount {
  readonly id: string;
  /** The id of the mount that contains the mount point. */
  readonly parent: string;
  /** The device number of the mounted file system, for example `259:1`. */
  readonly device: string;
  readonly from: string;
  /** The mount point, with each byte as one character, because file names need not be UTF-8. */
  readonly path: string;
  readonly type: string;
  /** The name of the mounted device or of the server's share, with each byte as one character. */
  readonly source: string;
  /** The options of the mount and of its file system, for example `noatime`. */
  readonly options: readonly string[];
  /**
   * True if somebody mounted the file system read-only. If the kernel made a file system read-only after an error of the disk, only the file system's
   * own options contain `ro`, not the mount's.
   */
  readonly isReadOnly: boolean;
}

/**
 * Parses the text of `/proc/PID/mountinfo`, which lists the mounts that a process sees. In `/proc/PID/mountinfo`, the kernel writes spaces and line
 * ends of a path as octal numbers.
 */
export function parseMounts(text: string): Mount[] {
  return text.split("\n").flatMap((line) => {
    const fields = line.split(" ");
    const dash = fields.indexOf("-", 6);
    const path = fields[4];
    if (path === undefined || dash < 0) return [];
    const [id = "", parent = "", device = "", from = "", , own = ""] = fields;
    const [type = "", source = "", shared = ""] = fields.slice(dash + 1);
    const [ofMount, ofFileSystem] = [own.split(","), shared.split(",")];
    return [
      {
        id,
        parent,
        device,
        from: plainPath(from),
        path: plainPath(path),
        type,
        source: plainPath(source),
        options: [...ofMount, ...ofFileSystem],
        isReadOnly: ofMount.includes("ro") && ofFileSystem.includes("ro"),
      },
    ];
  });
}

/** True if a path is the folder itself or lies in the folder. */
export const isWithin = (path: string, folder: string): boolean =>
  folder === "/" || path === folder || path.startsWith(`${folder}/`);

/**
 * Matches file systems whose content another computer or a process serves. A system call on a file of a network file system waits as long as the file
 * system's server does not answer.
 */
const NETWORK =
  /^(nfs|cifs|smb|ceph|lustre|wekafs|gpfs|beegfs|glusterfs|afs|9p|virtiofs|ncpfs|orangefs|pvfs|panfs|vastfs|fuse)/;
export const isNetworkMount = (mount: Pick<Mount, "type"> | undefined): boolean =>
  mount !== undefined && NETWORK.test(mount.type) && mount.type !== "fusectl";

/**
 * The user who mounted a FUSE file system, or null for other file systems. `fuseUserOf` returns null for `fuseblk`, the FUSE file system of a local
 * disk, which counts as the site's and not as a user's.
 */
export function fuseUserOf({ type, options }: Pick<Mount, "type" | "options">): number | null {
  if (type !== "fuse" && !type.startsWith("fuse.")) return null;
  const user = options.find((option) => /^user_id=\d+$/.test(option));
  return user === undefined ? null : Number(user.slice("user_id=".length));
}

/** A path without the octal numbers that mountinfo and fstab have in place of spaces and line ends. */
export const plainPath = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_all, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));

export async function readMounts(root: string): Promise<Mount[]> {
  return parseMounts(await readFile(join(root, "proc/self/mountinfo"), "latin1"));
}
