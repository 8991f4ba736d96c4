import { createHash } from "node:crypto";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { basename, join } from "node:path";
import { codeOf, isGone, mountIdOf, namesIfThere } from "./proc-files.ts";
import { hasEnded, hasFirstThreadEnded, parseStat } from "./proc-stat.ts";

export interface DescriptorTable {
  /** The folder in /proc with a process's descriptors, relative to the process's folder: `fd`, or `task/<tid>/fd`. */
  readonly folder: string;
  readonly descriptors: readonly string[];
}

/**
 * The facts that must be equal so that a file descriptor with the same number in two threads counts as one descriptor: its path, or its path and
 * mount. For a caller that reads files, an equal path is not enough, because a tenant may mount a device over a file that another thread has open.
 */
export type Sameness = "path" | "path_and_mount";

/**
 * Lists the descriptors of a process from its folder in /proc. The threads of a process usually share one table of descriptors, but every thread may
 * leave the shared table by unshare(CLONE_FILES), and `fd` then lacks what the thread opens. The kernel does not tell Node.js which threads share a
 * table of descriptors. `descriptorTables` compares the threads' tables of descriptors, yields each different table once, and yields null for each
 * thread whose table it has already yielded, so that the caller can pause. If the first thread has ended, only the folders of the other threads list
 * descriptors.
 */
export function* descriptorTables(process: string, sameness: Sameness): Generator<DescriptorTable | null> {
  const stat = parseStat(readFileSync(join(process, "stat"), "latin1"));
  const seen = new Set<string>();
  const hasOthers = stat.threads > 1 && !hasEnded(stat);
  if (!hasFirstThreadEnded(stat)) {
    const descriptors = readdirSync(join(process, "fd"));
    yield { folder: "fd", descriptors };
    if (hasOthers) seen.add(digestOf(join(process, "fd"), descriptors, sameness));
  }
  if (!hasOthers) return;
  for (const thread of readdirSync(join(process, "task"))) {
    if (thread === basename(process)) continue;
    const folder = join("task", thread, "fd");
    const descriptors = namesIfThere(join(process, folder));
    const digest = digestOf(join(process, folder), descriptors, sameness);
    yield seen.has(digest) ? null : { folder, descriptors };
    seen.add(digest);
  }
}

/** Yields the paths of all descriptors of a process in /proc, relative to the process's folder: `fd/<n>`, or `task/<tid>/fd/<n>`. */
export function* descriptorsOf(process: string, sameness: Sameness): Generator<string> {
  for (const table of descriptorTables(process, sameness))
    if (table !== null) for (const descriptor of table.descriptors) yield join(table.folder, descriptor);
}

function digestOf(folder: string, descriptors: readonly string[], sameness: Sameness): string {
  const facts = descriptors.map((fd) => {
    const target = targetOf(folder, fd);
    return `${fd} ${target} ${sameness === "path_and_mount" && target.startsWith("/") ? mountIdOf(join(folder, fd)) : ""}`;
  });
  return createHash("sha256").update(facts.join("\0")).digest("hex");
}

/**
 * If a descriptor's target has more than 4,095 bytes, no link in /proc can show it, so `targetOf` returns a text that differs for each descriptor
 * table.
 */
function targetOf(folder: string, fd: string): string {
  try {
    return readlinkSync(join(folder, fd));
  } catch (error) {
    if (codeOf(error) === "ENAMETOOLONG") return `a long path in ${folder}`;
    if (isGone(error)) return "";
    throw error;
  }
}
