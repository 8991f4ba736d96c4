/**
 * The folders that no order may empty, with everything below them. Their content belongs to the operating system, to Muster or to accounts. Accounts
 * and temporary folders have cleaning steps of their own.
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
/** Folders that must not be emptied as a whole, because several file systems may be mounted in them. Folders below them may be emptied. */
const PARENTS_OF_MOUNTS = ["mnt", "media", "srv"];

const NAME = /^[A-Za-z0-9._+@-]{1,64}$/;

/** Whether an order may name the path as a scratch folder: a plain absolute path that is no folder of the system. */
export function isScratchPath(path: string): boolean {
  const [before, first = "", ...rest] = path.split("/");
  if (before !== "" || [first, ...rest].some((name) => !NAME.test(name) || /^[.]+$/.test(name))) return false;
  if (PARENTS_OF_MOUNTS.includes(first)) return rest.length > 0;
  return !SYSTEM_FOLDERS.some((folder) => folder === first);
}
