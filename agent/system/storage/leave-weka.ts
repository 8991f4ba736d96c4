import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { messageOf } from "../../message-of.ts";
import { toolsOf } from "../exec.ts";
import { type Mount, parseMounts } from "../mounts.ts";
import type { WorkRun } from "../workers/define-work.ts";
import { toolPath } from "./attributes.ts";
import { codeOf } from "./descriptors.ts";
import type { StepEnd } from "./works.ts";

const WEKA_FILE_SYSTEM = "wekafs";
/** The file /proc/wekafs/interface exists while the Weka client runs. Without the Weka client, each system call to a Weka mount waits for ever. */
const INTERFACE = "proc/wekafs/interface";
const UNMOUNT_TIMEOUT_MS = 120_000;
const WEKA_TIMEOUT_MS = 120_000;
const GONE_WITHIN_MS = 30_000;
const LOOK_EVERY_MS = 200;
const MOST_NAMED = 5;

const Containers = z
  .array(z.looseObject({ name: z.string().regex(/^[\w.-]{1,64}$/), type: z.string().optional() }))
  .max(64);

/**
 * The worker process ends the host's use of the Weka storage cluster. The cleaning step unmounts the Weka file systems, checks that no process has
 * one mounted, and removes the Weka client's containers. The installed Weka client stays on the host, so that it need not be installed for each
 * tenant (decision C7).
 */
export async function leaveWeka(run: WorkRun, goneWithinMs = GONE_WITHIN_MS): Promise<StepEnd> {
  const mounts = wekaMounts(mountinfoOf(run.root, "self"));
  const evidence: StepEnd["evidence"] = { mounts: mounts.length, client_running: isClientRunning(run.root) };
  if (mounts.length > 0 && !evidence["client_running"])
    return failed(
      "The Weka client does not run, so an unmount would wait for ever. Start the client, or reboot the host.",
      evidence,
    );
  const faults = await unmountAll(run, mounts);
  const left = await waitUntilGone(run, goneWithinMs);
  if (left.length > 0) faults.push(`Still mounted: ${named(left.map(({ path }) => path))}.`);
  const elsewhere = processesWithWeka(run.root);
  if (elsewhere.length > 0)
    faults.push(`Processes ${named(elsewhere)} have a Weka file system mounted in a mount namespace of their own.`);
  evidence["still_mounted"] = left.length;
  evidence["other_namespaces"] = elsewhere.length;
  if (faults.length === 0) faults.push(...(await removeContainers(run, evidence)));
  if (mounts.length > 0 && faults.length === 0) {
    writeFileSync(join(run.root, "proc/sys/vm/drop_caches"), "3\n");
    evidence["caches_dropped"] = true;
  }
  return faults.length > 0
    ? failed(faults.join(" "), evidence)
    : { outcome: "ok", message: `No Weka file system is mounted; ${mounts.length} were unmounted.`, evidence };
}

const failed = (message: string, evidence: StepEnd["evidence"]): StepEnd => ({ outcome: "failed", message, evidence });

const named = (names: readonly string[]): string =>
  names.length <= MOST_NAMED
    ? names.join(", ")
    : `${names.slice(0, MOST_NAMED).join(", ")} and ${names.length - MOST_NAMED} more`;

/** Returns the Weka mounts and the mounts inside them, the innermost mount first. */
export function wekaMounts(mounts: readonly Mount[]): Mount[] {
  const weka = mounts.filter(({ type }) => type === WEKA_FILE_SYSTEM).map(({ path }) => path);
  // The kernel lists an outer mount before the mounts inside it.
  return mounts.filter(({ path }) => weka.some((one) => path === one || path.startsWith(`${one}/`))).reverse();
}

async function unmountAll(run: WorkRun, mounts: readonly Mount[]): Promise<string[]> {
  const tool = toolsOf(run.root);
  const faults: string[] = [];
  for (const [done, { path }] of mounts.entries()) {
    run.throwIfStopped();
    run.progress({ step: "weka_mounts", done, bytes: 0 });
    // A Weka mount whose path is not plain text stays, and the cleaning step fails, because the agent cannot pass the path to `umount`.
    const { exitCode, stderr } = await tool("umount", ["--", path], UNMOUNT_TIMEOUT_MS);
    if (exitCode !== 0) faults.push(`umount ${path} ended with status ${exitCode}: ${stderr.slice(-200).trim()}.`);
  }
  return faults;
}

/** Waits until the kernel lists no Weka mount, because `umount` may report success while the kernel still lists the mount. */
async function waitUntilGone(run: WorkRun, withinMs: number): Promise<Mount[]> {
  const until = performance.now() + withinMs;
  for (;;) {
    const left = wekaMounts(mountinfoOf(run.root, "self"));
    if (left.length === 0 || performance.now() > until) return left;
    run.throwIfStopped();
    await sleep(LOOK_EVERY_MS);
  }
}

/** Returns the processes whose mount namespace still contains a Weka mount, for example in containers. */
function processesWithWeka(root: string): string[] {
  const pids = readdirSync(join(root, "proc")).filter((name) => /^\d+$/.test(name));
  return pids.filter((pid) => mountinfoOf(root, pid).some(({ type }) => type === WEKA_FILE_SYSTEM));
}

function mountinfoOf(root: string, process: string): Mount[] {
  try {
    return parseMounts(readFileSync(join(root, "proc", process, "mountinfo"), "latin1"));
  } catch (error) {
    // A process other than the agent's own may have ended since `readdirSync` listed it in /proc.
    if (process !== "self" && ["ENOENT", "ESRCH", "EINVAL"].includes(codeOf(error))) return [];
    throw error;
  }
}

function isClientRunning(root: string): boolean {
  try {
    readFileSync(join(root, INTERFACE));
    return true;
  } catch (error) {
    // Even an unreadable file /proc/wekafs/interface shows that the Weka client runs.
    return codeOf(error) !== "ENOENT";
  }
}

/**
 * Removes the Weka client's containers, so that the host leaves the Weka cluster. If a Weka container on the host has a type other than `client`, the
 * agent removes no Weka container.
 */
async function removeContainers(run: WorkRun, evidence: StepEnd["evidence"]): Promise<string[]> {
  if (toolPath(run.root, "weka") === null) return [];
  const weka = async (...args: string[]): Promise<string> => {
    const { exitCode, stdout, stderr } = await toolsOf(run.root)("weka", ["local", ...args], WEKA_TIMEOUT_MS);
    if (exitCode !== 0)
      throw new Error(`weka local ${args[0]} ended with status ${exitCode}: ${stderr.slice(-200).trim()}.`);
    return stdout;
  };
  try {
    const containers = containersIn(await weka("ps", "-J"));
    if (containers === null) return ["The list of the Weka client's containers could not be read."];
    const others = containers.filter(({ type }) => type !== "client").map(({ name }) => name);
    if (others.length > 0) return [`The containers ${named(others)} are not a client's and are not removed.`];
    for (const { name } of containers) {
      await weka("stop", name);
      await weka("rm", name, "-f");
    }
    evidence["containers_removed"] = containers.length;
    const left = containersIn(await weka("ps", "-J"));
    return left?.length === 0 ? [] : ["Containers of the Weka client are left after their removal."];
  } catch (error) {
    return [messageOf(error)];
  }
}

function containersIn(text: string): z.output<typeof Containers> | null {
  try {
    return Containers.safeParse(JSON.parse(text)).data ?? null;
  } catch {
    // If the program `weka` printed no JSON, the Weka containers are unknown, and unknown does not count as none.
    return null;
  }
}
