import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { codeOf } from "./descriptors.ts";

/** A file or folder that a process uses, by a descriptor, as its working folder or mapped into its memory. */
export interface OpenFile {
  readonly pid: number;
  /** Which use of the process: a descriptor's number, `cwd`, `root` or the addresses of a mapping. */
  readonly use: string;
  readonly path: string;
  /** Whether the file has no name any more. Its content stays on the disk until the process closes it. */
  readonly isDeleted: boolean;
}

export interface OpenFiles {
  readonly files: readonly OpenFile[];
  /** How many processes did not let the agent read which files they use. */
  readonly unreadable: number;
}

/** Process 1 is never a tenant's. In some containers Linux does not let anybody read it. */
const INIT = "1";
const DELETED = " (deleted)";

/** The files below a folder that processes use. Only links in /proc are read, never the files, so a hanging file system does not hold the reader. */
export function openFilesBelow(folder: string): OpenFiles {
  const files: OpenFile[] = [];
  let unreadable = 0;
  for (const name of readdirSync("/proc").filter((one) => /^\d+$/.test(one) && Number(one) !== process.pid)) {
    const uses = usesOf(name);
    if (uses === null && name !== INIT) unreadable += 1;
    for (const [use, target] of uses ?? []) {
      const isDeleted = target.endsWith(DELETED);
      const path = isDeleted ? target.slice(0, -DELETED.length) : target;
      if (path.startsWith(`${folder}/`)) files.push({ pid: Number(name), use, path, isDeleted });
    }
  }
  return { files, unreadable };
}

/** What a process uses, by the kind of use. Null if Linux does not let the agent read it. A process that has ended uses nothing. */
function usesOf(pid: string): [string, string][] | null {
  const folder = join("/proc", pid);
  try {
    const descriptors = readdirSync(join(folder, "fd")).map((fd) => join("fd", fd));
    const links = [...descriptors, "cwd", "root"].flatMap((use): [string, string][] => {
      const target = targetOf(join(folder, use));
      return target === null ? [] : [[use, target]];
    });
    return [...links, ...mappedFiles(readFileSync(join(folder, "maps"), "latin1"))];
  } catch (error) {
    const code = codeOf(error);
    if (code === "ENOENT" || code === "ESRCH") return [];
    if (code === "EACCES" || code === "EPERM") return null;
    throw error;
  }
}

/** The target of a link of a process, or null if the descriptor was closed meanwhile. The links of a process of the kernel have no target. */
function targetOf(link: string): string | null {
  try {
    return readlinkSync(link);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
    throw error;
  }
}

const mappedFiles = (maps: string): [string, string][] =>
  maps.split("\n").flatMap((line): [string, string][] => {
    const [, addresses = "", path = ""] = /^(\S+) \S+ \S+ \S+ \d+ +(\/.*)$/.exec(line) ?? [];
    return path === "" ? [] : [[addresses, path]];
  });

/** The uses whose files lost their name between two looks. */
export function newlyDeleted(before: readonly OpenFile[], after: readonly OpenFile[]): OpenFile[] {
  const keyOf = (file: OpenFile): string => `${file.pid} ${file.use} ${file.path}`;
  const known = new Set(before.filter((file) => file.isDeleted).map(keyOf));
  return after.filter((file) => file.isDeleted && !known.has(keyOf(file)));
}

/** The paths of the sockets at which a process listens, from the kernel's list. */
export function listeningSockets(text: string): ReadonlySet<string> {
  const LISTENS = 0x10000;
  return new Set(
    text.split("\n").flatMap((line) => {
      const [, , , flags = "", , , , path] = line.trim().split(/\s+/);
      return path?.startsWith("/") === true && (Number.parseInt(flags, 16) & LISTENS) !== 0 ? [path] : [];
    }),
  );
}
