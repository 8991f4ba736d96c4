/**
 * The folders directly below the host's root folder that no task's order may empty. Also below a system folder, a task's order may not empty any
 * folder. The content of the system folders belongs to the operating system, to Muster or to the host's user accounts. Accounts and temporary folders
 * such as `/tmp` have cleaning steps of their own and are not cleaned as scratch folders.
 */
export const SYSTEM_FOLDERS = [
  "bin",
  "boot",
  "dev",
  "etc",
  "home",
  "lib",
  "lib32",
  "lib64",
  "libx32",
  "opt",
  "proc",
  "root",
  "run",
  "sbin",
  "snap",
  "sys",
  "tmp",
  "usr",
  "var",
] as const;
/**
 * Folders that no task may empty as a whole, because several file systems may be mounted below each. A task may empty folders below `/mnt`, `/media`
 * and `/srv`.
 */
const PARENTS_OF_MOUNTS = ["mnt", "media", "srv"];

const NAME = /^[A-Za-z0-9._+@-]{1,64}$/;

/** A scratch folder, which a task may empty, has a plain absolute path and is no system folder. */
export function isScratchPath(path: string): boolean {
  const [before, first = "", ...rest] = path.split("/");
  if (before !== "" || [first, ...rest].some((name) => !NAME.test(name) || /^[.]+$/.test(name))) return false;
  if (PARENTS_OF_MOUNTS.includes(first)) return rest.length > 0;
  return !SYSTEM_FOLDERS.some((folder) => folder === first);
}
