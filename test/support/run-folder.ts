import { lstatSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { execa } from "execa";
import { databasesOutside, newHubFolder, removeHubState } from "./hub-state.ts";
import { until } from "./until.ts";

/**
 * Creates a folder in `parent` whose name contains the id of the present process. Before `startRun` creates the folder, it cleans up the folders that
 * killed test runs of the current user left behind.
 */
export async function startRun(parent: string, prefix: string, end = endRun): Promise<string> {
  mkdirSync(parent, { recursive: true });
  for (const name of readdirSync(parent).filter((one) => one.startsWith(`${prefix}-`))) {
    const folder = join(parent, name);
    if (isOfDead(name) && isOwn(folder)) await end(folder);
  }
  return newHubFolder(`${prefix}-${process.pid}-${startOf(String(process.pid)) ?? "unknown"}-`, parent);
}

export const pidOf = (name: string): string | undefined => NAME.exec(name)?.[1];

export async function endRun(folder: string): Promise<void> {
  const places = [folder, ...databasesOutside(folder)];
  await until(`the processes of ${folder} to end`, () => {
    const left = processesOf(places);
    for (const pid of left) kill(pid);
    return left.length === 0 || undefined;
  });
  // Two test runs that start at once may clean up one folder, so a mount may already be gone.
  for (const at of mountsIn(folder)) await execa("umount", ["--lazy", at], { reject: false });
  const mounted = mountsIn(folder);
  if (mounted.length > 0) throw new Error(`Still mounted, so that the folder cannot be removed: ${mounted.join(", ")}`);
  removeHubState(folder);
}

/** Matches the name of a test run's folder: prefix, process id, start time of the process, and six random characters. */
const NAME = /-([0-9]+)-([0-9]+)-[A-Za-z0-9]{6}$/;

function isOfDead(name: string): boolean {
  const [, pid, start] = NAME.exec(name) ?? [];
  return pid !== undefined && startOf(pid) !== start;
}

function isOwn(folder: string): boolean {
  const status = lstatSync(folder, { throwIfNoEntry: false });
  return status?.isDirectory() === true && status.uid === process.getuid?.();
}

/** Returns the start time of a process in the kernel's ticks since the boot, or undefined if the process does not exist. */
const startOf = (pid: string): string | undefined =>
  procFile(pid, "stat")
    .replace(/^.*[)] /s, "")
    .split(" ")[19];

function processesOf(places: readonly string[]): string[] {
  const own = String(process.pid);
  return readdirSync("/proc").filter((pid) => /^\d+$/.test(pid) && pid !== own && isOf(places, pid));
}

/** True if a process's arguments, its environment, or its container's root folder show that the process belongs to a folder. */
function isOf(places: readonly string[], pid: string): boolean {
  const words = ["cmdline", "environ"].map((file) => procFile(pid, file));
  const roots = mountsOf(pid).flatMap(({ root, at }) => (at === "/" ? [root] : []));
  return places.some((place) => [...words, ...roots].some((text) => text.includes(`${place}/`)));
}

const mountsIn = (folder: string): string[] =>
  mountsOf("self")
    .map(({ at }) => at)
    .filter((at) => at.startsWith(`${folder}/`))
    .reverse();

/** Returns the mounts of a process. In each mount, `root` is the folder of the mounted file system that is visible at the path `at`. */
const mountsOf = (pid: string): { root: string; at: string }[] =>
  procFile(pid, "mountinfo")
    .split("\n")
    .map((line) => line.split(" "))
    .map(([, , , root = "", at = ""]) => ({ root, at }));

/** Returns the content of a process's file in /proc, or an empty text if the process has ended. */
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
    // A SIGKILL fails if the process has already ended.
  }
}
