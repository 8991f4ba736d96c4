import { access } from "node:fs/promises";
import { join } from "node:path";
import type { ResidueEntry } from "../../../shared/residue/snapshot.ts";
import { isHuman } from "../../accounts/human-uid.ts";
import { isMissing } from "../files.ts";
import { readAccounts } from "./accounts.ts";
import { type Process, readProcesses } from "./processes.ts";
import { presences, type Reading, settled, Unreadable } from "./reading.ts";

/** Matches paths in the folders into which packages install programs. */
const SYSTEM_FOLDERS = /^\/(usr|bin|sbin|lib|lib32|lib64|snap)\//;
const USR_LOCAL = "/usr/local/";
const DELETED = " (deleted)";
/** Matches the control groups of people's logins and of containers, except root's `user-0.slice`. */
const CONTAINED =
  /\/(user[.]slice\/user-(?!0[.]slice)|machine[.]slice|docker[-/]|kubepods|libpod|lxc[./]|machine\/|containerd[-/])/;
/** Matches the names of kernel threads, which a process may take to disguise itself. */
const KERNEL_NAME =
  /^(kworker|kthreadd|ksoftirqd|migration|cpuhp|rcu_|rcub|kswapd|kcompactd|khugepaged|khungtaskd|kdevtmpfs|kauditd|kintegrityd|kblockd|jbd2|xfsaild|scsi_|irq\/|watchdogd|oom_reaper|writeback|nvme-|md\d|ext4-)/;

const nameOf = ({ exe, comm }: Process): string => exe ?? comm;

export async function readTenantProcesses(reading: Reading): Promise<ResidueEntry[]> {
  const { tenant } = reading;
  if (tenant === null) throw new Unreadable("The order names no tenant.");
  const own = (await readProcesses(reading)).filter(({ uids }) => uids.includes(tenant.uid));
  return presences(
    reading,
    own.map((process) => `${tenant.login_user}: ${nameOf(process)}`),
  );
}

export function readUserProcesses(reading: Reading): Promise<ResidueEntry[]> {
  return settled(reading, async () => {
    const names = new Map((await readAccounts(reading)).map(({ uid, name }) => [uid, name]));
    const people = (await readProcesses(reading)).filter(
      (one) => !one.isKernelThread && (one.uids.some(isHuman) || CONTAINED.test(one.cgroup)),
    );
    const ownerOf = (one: Process): string => {
      const uid = one.uids.find(isHuman) ?? one.uids[0] ?? 0;
      return names.get(uid) ?? `user ${uid}`;
    };
    return presences(
      reading,
      people.map((one) => `${ownerOf(one)}: ${nameOf(one)}`),
    );
  });
}

/** Reads the processes whose program is deleted, only in memory, or outside the system's folders. */
export function readUnpackagedProcesses(reading: Reading): Promise<ResidueEntry[]> {
  return settled(reading, async () => {
    const found: string[] = [];
    for (const { exe, comm } of await readProcesses(reading)) {
      if (exe === null) continue;
      const path = exe.endsWith(DELETED) ? exe.slice(0, -DELETED.length) : exe;
      const inSystem = SYSTEM_FOLDERS.test(path) && !path.startsWith(USR_LOCAL);
      // If a running program's file was deleted and a new file in a system folder has its path, an upgrade has replaced the program.
      const isDeleted = exe.endsWith(DELETED) && !(inSystem && (await exists(join(reading.root, path))));
      if (isDeleted || !inSystem) found.push(`${comm}: ${path}${isDeleted ? DELETED : ""}`);
    }
    return presences(reading, found);
  });
}

async function exists(path: string): Promise<boolean> {
  try {
    await access(path);
    return true;
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}

/**
 * Finds processes that only look like kernel threads: by a name in brackets, no arguments, or a kernel thread's name. No process can forge the flag
 * by which the kernel marks its own threads. A starting process has no arguments for a moment. The residue snapshot lists a process that poses as a
 * kernel thread only if two reads of the process list find the process.
 */
export function readFakeKernelThreads(reading: Reading): Promise<ResidueEntry[]> {
  return settled(reading, async () => {
    const fakes = (await readProcesses(reading)).filter(
      (one) =>
        !one.isKernelThread &&
        !one.isZombie &&
        one.pid !== 1 &&
        (one.args.length === 0 || one.args[0]?.startsWith("[") === true || KERNEL_NAME.test(one.comm)),
    );
    const shown = ({ args, comm }: Process): string => (args[0]?.startsWith("[") === true ? args[0] : comm);
    return presences(
      reading,
      fakes.map((one) => `${shown(one)}: ${one.exe ?? "no program"} (pid ${one.pid}, started ${one.startedAt})`),
    );
  });
}

export function readTracedProcesses(reading: Reading): Promise<ResidueEntry[]> {
  return settled(reading, async () => {
    const processes = await readProcesses(reading);
    const byPid = new Map(processes.map((one) => [one.pid, one]));
    const traced = processes.filter(({ tracer }) => tracer !== 0);
    return presences(
      reading,
      traced.map((one) => `${nameOf(one)} traced by ${nameOf(byPid.get(one.tracer) ?? one)}`),
    );
  });
}
