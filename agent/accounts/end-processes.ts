import { setTimeout as sleep } from "node:timers/promises";
import { hasEnded } from "../system/proc-stat.ts";
import type { HostProcess, ProcessTable } from "../system/processes.ts";

export interface EndTiming {
  /** How many milliseconds processes may take to end after SIGTERM. */
  readonly termMs: number;
  /** How many milliseconds processes may take to end after the first SIGKILL. */
  readonly killMs: number;
  readonly lookEveryMs: number;
}
export const END_TIMING: EndTiming = { termMs: 5_000, killMs: 30_000, lookEveryMs: 100 };

export interface Ownership {
  readonly owns: (process: HostProcess) => boolean;
  /** Whether `endProcesses` may end every process that runs under the given uid. */
  readonly isOwnUid: (uid: number) => boolean;
  /** The uid whose systemd slice of login sessions (`user-UID.slice`) `endProcesses` may kill as a whole, or null if it may kill no whole slice. */
  readonly slice: number | null;
  /**
   * Ends the waits of processes that survived SIGKILL, for example by aborting the FUSE connections of their users. Returns a text if something
   * limited what `release` could do, for example if the file system fusectl is not mounted, and null otherwise.
   */
  readonly release: (survivors: readonly HostProcess[]) => Promise<string | null>;
}
const MOST_UIDS_AT_ONCE = 64;

export interface Ended {
  readonly found: number;
  readonly killed: number;
  readonly survivors: readonly HostProcess[];
  /** What limited `Ownership.release`, or null. */
  readonly limit: string | null;
}

/** Returns the running processes for which `isOwned` returns true, without the agent and its ancestors. */
export async function runningOf(
  table: ProcessTable,
  isOwned: (process: HostProcess) => boolean,
): Promise<HostProcess[]> {
  const all = await table.read();
  const above = ancestorsOf(all, process.pid);
  return all.filter((one) => one.pid > 1 && !above.has(one.pid) && !hasEnded(one) && isOwned(one));
}

function ancestorsOf(all: readonly HostProcess[], pid: number): Set<number> {
  const parents = new Map(all.map((one) => [one.pid, one.parent]));
  const above = new Set<number>();
  for (let at: number | undefined = pid; at !== undefined && at > 0 && !above.has(at); at = parents.get(at))
    above.add(at);
  return above;
}

/** `endProcesses` returns when two reads of the process list in a row find no process of the owner. */
export async function endProcesses(
  table: ProcessTable,
  ownership: Ownership,
  signal: AbortSignal,
  timing: EndTiming = END_TIMING,
): Promise<Ended> {
  const isOwned = ownership.owns;
  const first = await runningOf(table, isOwned);
  for (const one of first) table.signal(one, "SIGTERM");
  const afterTerm = await waitUntilNone(table, isOwned, timing.termMs, timing.lookEveryMs, signal);
  if (afterTerm.length === 0) return { found: first.length, killed: 0, survivors: [], limit: null };
  const killed = new Set<string>();
  const keyOf = ({ pid, startTicks }: HostProcess): string => `${pid}/${startTicks}`;
  let limit: string | null = null;
  const deadline = performance.now() + timing.killMs;
  for (let emptyReads = 0; ; ) {
    const left = await runningOf(table, isOwned);
    emptyReads = left.length === 0 ? emptyReads + 1 : 0;
    if (emptyReads >= 2 || performance.now() >= deadline)
      return { found: Math.max(first.length, killed.size), killed: killed.size, survivors: left, limit };
    const survivors = left.filter((one) => killed.has(keyOf(one)));
    if (survivors.length > 0) limit = await ownership.release(survivors);
    for (const one of left) killed.add(keyOf(one));
    if (left.length > 0) await killAll(table, left, ownership);
    await sleep(timing.lookEveryMs, undefined, { signal });
  }
}

/**
 * If a user's processes start new processes faster than the agent finds them, only a single kill of all processes of the user's uid is fast enough.
 * If a uid, such as root's, also runs processes that must not end, `killAll` kills each chosen process separately.
 */
async function killAll(
  table: ProcessTable,
  left: readonly HostProcess[],
  { slice, isOwnUid }: Ownership,
): Promise<void> {
  if (slice !== null) table.killSlice(slice);
  const uids = new Set(left.flatMap(({ uids: [real] }) => (real !== undefined && isOwnUid(real) ? [real] : [])));
  for (const uid of [...uids].slice(0, MOST_UIDS_AT_ONCE)) await table.killAllOf(uid);
  for (const one of left) table.signal(one, "SIGKILL");
}

async function waitUntilNone(
  table: ProcessTable,
  isOwned: (process: HostProcess) => boolean,
  withinMs: number,
  everyMs: number,
  signal: AbortSignal,
): Promise<HostProcess[]> {
  const deadline = performance.now() + withinMs;
  for (let emptyReads = 0; ; ) {
    const left = await runningOf(table, isOwned);
    emptyReads = left.length === 0 ? emptyReads + 1 : 0;
    if (emptyReads >= 2 || performance.now() >= deadline) return left;
    await sleep(everyMs, undefined, { signal });
  }
}

/**
 * `survivorText` names up to ten processes that did not end, each with the thread that did not end and the kernel function in which the thread waits.
 * A thread in state D ends only when its wait in the kernel ends. The first thread of a process that did not end may have ended itself, so
 * `survivorText` may name another thread.
 */
export const survivorText = (table: ProcessTable, survivors: readonly HostProcess[]): string =>
  survivors
    .slice(0, 10)
    .map(({ pid, comm, state }) => {
      const stuck = table.stuckThread(pid);
      const thread = stuck === null || stuck.tid === pid ? "" : `, thread ${stuck.tid}`;
      const wait = stuck === null || stuck.waitsIn === "" ? "" : `, waits in ${stuck.waitsIn}`;
      return `${comm} (pid ${pid}${thread}, state ${stuck?.state ?? state}${wait})`;
    })
    .join(", ");
