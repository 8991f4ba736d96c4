/**
 * The folders directly below the host's root folder that no task order may empty. A task order may not empty a folder below one of SYSTEM_FOLDERS
 * either. The content of SYSTEM_FOLDERS belongs to the operating system, to Muster or to the host's user accounts. Accounts and temporary folders
 * have their own cleaning steps.
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
 * Folders that no task may empty as a whole, because several file systems may be mounted below the folder. A task may empty folders below `/mnt`,
 * `/media` and `/srv`.
 */
const PARENTS_OF_MOUNTS = ["mnt", "media", "srv"];

const NAME = /^[A-Za-z0-9._+@-]{1,64}$/;

/** True if a task order may name the path as a scratch folder: a plain absolute path that is no system folder. */
export function isScratchPath(path: string): boolean {
  const [before, first = "", ...rest] = path.split("/");
  if (before !== "" || [first, ...rest].some((name) => !NAME.test(name) || /^[.]+$/.test(name))) return false;
  if (PARENTS_OF_MOUNTS.includes(first)) return rest.length > 0;
  return !SYSTEM_FOLDERS.some((folder) => folder === first);
}
