import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";

const TOOL_TIMEOUT_MS = 60_000;
/** How many files one call names. The arguments of a call stay far below Linux's limit. */
export const MOST_INODES = 200;
const TOOL_FOLDERS = ["usr/bin", "usr/sbin", "bin", "sbin"];

/** The path of a tool of the host, or null if the host has no such tool. */
export const toolPath = (root: string, tool: string): string | null =>
  TOOL_FOLDERS.map((folder) => join(root, folder, tool)).find((path) => existsSync(path)) ?? null;

/** Clears the attributes of files in an open folder, and returns whether that succeeded. */
export type ClearAttributes = (folder: number, inodes: readonly bigint[]) => boolean;

/**
 * Clears the attributes `immutable` and `append only` of files in a folder, which prevent a removal even by root. `find` chooses the files by their
 * inode numbers and gives their names to `chattr`, because a name may consist of any bytes and Node.js passes only texts. `find` sees the folder as
 * the descriptor 3 that it inherits, so a moved or replaced folder does not lead elsewhere.
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
