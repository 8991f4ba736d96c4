import { lstatSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { execa } from "execa";
import { databasesOutside, newHubFolder, removeHubState } from "./hub-state.ts";
import { until } from "./until.ts";

/**
 * A folder of this process's own in `parent`, which goes by the process that it is of. What this user's runs left there that were killed is
 * brought to an end first, by `end`.
 */
export async function startRun(parent: string, prefix: string, end = endRun): Promise<string> {
  mkdirSync(parent, { recursive: true });
  for (const name of readdirSync(parent).filter((one) => one.startsWith(`${prefix}-`))) {
    const folder = join(parent, name);
    if (isOfDead(name) && isOwn(folder)) await end(folder);
  }
  return newHubFolder(`${prefix}-${process.pid}-${startOf(String(process.pid)) ?? "unknown"}-`, parent);
}

/** The process that a run's folder is of. */
export const pidOf = (name: string): string | undefined => NAME.exec(name)?.[1];

/** Ends all that runs of it or is mounted in it, whoever started it, and removes it. */
export async function endRun(folder: string): Promise<void> {
  const places = [folder, ...databasesOutside(folder)];
  await until(`the processes of ${folder} to end`, () => {
    const left = processesOf(places);
    for (const pid of left) kill(pid);
    return left.length === 0 || undefined;
  });
  // Two runs that start at once may end the same one: what the other has unmounted is no failure.
  for (const at of mountsIn(folder)) await execa("umount", ["--lazy", at], { reject: false });
  const mounted = mountsIn(folder);
  if (mounted.length > 0) throw new Error(`Still mounted, so that the folder cannot be removed: ${mounted.join(", ")}`);
  removeHubState(folder);
}

/** Prefix, process, its start, and what keeps apart two runs of one process. */
const NAME = /-([0-9]+)-([0-9]+)-[A-Za-z0-9]{6}$/;

/** A process id is used again; with its start it is one process's alone. */
function isOfDead(name: string): boolean {
  const [, pid, start] = NAME.exec(name) ?? [];
  return pid !== undefined && startOf(pid) !== start;
}

/** Not one of another user of the machine, nor a link to somewhere else. */
function isOwn(folder: string): boolean {
  const status = lstatSync(folder, { throwIfNoEntry: false });
  return status?.isDirectory() === true && status.uid === process.getuid?.();
}

/** In the kernel's ticks since the machine's start; none for a process that is not. */
const startOf = (pid: string): string | undefined =>
  procFile(pid, "stat")
    .replace(/^.*[)] /s, "")
    .split(" ")[19];

function processesOf(places: readonly string[]): string[] {
  const own = String(process.pid);
  return readdirSync("/proc").filter((pid) => /^\d+$/.test(pid) && pid !== own && isOf(places, pid));
}

/** By its words, its settings, or the system that it runs in: a container's lies in the folder. */
function isOf(places: readonly string[], pid: string): boolean {
  const words = ["cmdline", "environ"].map((file) => procFile(pid, file));
  const roots = mountsOf(pid).flatMap(({ root, at }) => (at === "/" ? [root] : []));
  return places.some((place) => [...words, ...roots].some((text) => text.includes(`${place}/`)));
}

/** The innermost first. */
const mountsIn = (folder: string): string[] =>
  mountsOf("self")
    .map(({ at }) => at)
    .filter((at) => at.startsWith(`${folder}/`))
    .reverse();

/** `root`: which folder of its file system is mounted `at` that place. */
const mountsOf = (pid: string): { root: string; at: string }[] =>
  procFile(pid, "mountinfo")
    .split("\n")
    .map((line) => line.split(" "))
    .map(([, , , root = "", at = ""]) => ({ root, at }));

/** Empty where the process is gone. */
function procFile(pid: string, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return "";
  }
}

function kill(pid: string): void {
  try {
    process.kill(Number(pid), "SIGKILL");
  } catch {
    // It has just ended by itself.
  }
}
