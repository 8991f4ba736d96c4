import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { execa } from "execa";
import { databasesOutside, removeHubState } from "../support/hub-state.ts";
import { until } from "../support/until.ts";
import { bootCache } from "./image/boot-image.ts";

/** A folder of this process's own, which goes by the process that it is of. What runs left that were killed is ended and removed first. */
export async function startRun(): Promise<string> {
  const runs = join(bootCache(), "runs");
  mkdirSync(runs, { recursive: true });
  for (const name of readdirSync(runs)) if (!isOfLiving(name)) await endRun(join(runs, name));
  const folder = join(runs, `run-${process.pid}-${startOf(String(process.pid))}`);
  mkdirSync(folder);
  return folder;
}

/** The run's network. Such a name has at most fifteen letters. */
export const bridgeOf = (run: string): string => `muster${basename(run).split("-")[1] ?? ""}`;

/** Ends all that runs of it or is mounted in it, whoever started it, and removes it. */
export async function endRun(folder: string): Promise<void> {
  const places = [folder, ...databasesOutside(folder)];
  await until(`the processes of ${folder} to end`, () => {
    const left = processesOf(places);
    for (const pid of left) kill(pid);
    return left.length === 0 || undefined;
  });
  await execa("ip", ["link", "delete", bridgeOf(folder)], { reject: false });
  for (const at of mountsIn(folder)) await execa("umount", ["--lazy", at]);
  removeHubState(folder);
}

/** A process id is used again; with its start it is one process's alone. */
function isOfLiving(name: string): boolean {
  const [, pid = "", start = ""] = name.split("-");
  return start !== "" && startOf(pid) === start;
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
