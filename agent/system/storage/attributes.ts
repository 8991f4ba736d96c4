import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";

const TOOL_TIMEOUT_MS = 60_000;
/** The most inode numbers in one call of `find`, far below Linux's limit for arguments. */
export const MOST_INODES = 200;
const TOOL_FOLDERS = ["usr/bin", "usr/sbin", "bin", "sbin"];

export const toolPath = (root: string, tool: string): string | null =>
  TOOL_FOLDERS.map((folder) => join(root, folder, tool)).find((path) => existsSync(path)) ?? null;

export type ClearAttributes = (folder: number, inodes: readonly bigint[]) => boolean;

/**
 * Returns a function that clears the attributes `immutable` and `append only`, which prevent a file's removal even by root. The program `find`
 * chooses files by inode number and passes the files' names to the program `chattr`. Node.js cannot pass file names to `chattr`, because a name may
 * contain any bytes and Node.js passes only text. The program `find` inherits the folder as descriptor 3, so nobody can lead `find` to another
 * folder.
 */
export function clearAttributesOn(root: string): ClearAttributes {
  const [find, chattr] = [toolPath(root, "find"), toolPath(root, "chattr")];
  if (find === null || chattr === null) return () => false;
  return (folder, inodes) => {
    const chosen = inodes.slice(0, MOST_INODES).flatMap((inode) => ["-o", "-inum", String(inode)]);
    const tests = ["(", ...chosen.slice(1), ")", "(", "-type", "f", "-o", "-type", "d", ")"];
    const clear = ["-exec", chattr, "-i", "-a", "--", "{}", "+"];
    const { status } = spawnSync(find, ["/proc/self/fd/3/.", "-maxdepth", "1", "-xdev", ...tests, ...clear], {
      stdio: ["ignore", "ignore", "ignore", folder],
      cwd: "/",
      timeout: TOOL_TIMEOUT_MS,
      env: { LC_ALL: "C" },
    });
    return status === 0;
  };
}
