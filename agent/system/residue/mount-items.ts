import { readFile, readlink } from "node:fs/promises";
import { join } from "node:path";
import type { ResidueEntry } from "../../../shared/residue/snapshot.ts";
import { type Mount, parseMounts } from "../mounts.ts";
import { isGone } from "../proc-files.ts";
import { withoutRandomParts } from "./entry-name.ts";
import { ownMounts } from "./foreign-mounts.ts";
import { pidsOf } from "./processes.ts";
import { namesIn, presences, type Reading, settled, textOf, Unreadable, valued } from "./reading.ts";
import { isReadOnlyDisk } from "./walked-mounts.ts";

const KINDS = ["mnt", "net", "pid", "user", "uts", "ipc", "cgroup", "time"] as const;
/** Matches the types of file systems that contain no files of people, and that many services mount in their own mount namespaces. */
const OF_KERNEL =
  /^(proc|sysfs|cgroup2?|devpts|mqueue|devtmpfs|securityfs|debugfs|tracefs|pstore|efivarfs|bpf|configfs|binfmt_misc|nsfs|fusectl|ramfs)$/;

interface Namespace {
  readonly kind: (typeof KINDS)[number];
  readonly id: string;
  readonly pid: number;
  readonly comm: string;
}

/** Returns the Linux namespaces of the host's processes, without the host's own namespaces. */
async function foreignNamespaces(reading: Reading): Promise<Namespace[]> {
  const own = await hostNamespaces(reading);
  const found = new Map<string, Namespace>();
  for (const pid of await pidsOf(reading)) {
    reading.signal.throwIfAborted();
    const folder = join(reading.root, "proc", String(pid));
    try {
      for (const kind of KINDS) {
        const id = await namespaceOf(folder, pid, kind);
        if (id === null || id === own.get(kind) || found.has(`${kind} ${id}`)) continue;
        const comm = (await readFile(join(folder, "comm"), "utf8")).trim();
        found.set(`${kind} ${id}`, { kind, id, pid, comm });
      }
    } catch (error) {
      if (!isGone(error)) throw error;
    }
  }
  return [...found.values()];
}

/**
 * Returns the id of a process's namespace, or null for an init process whose namespaces the agent may not read. The init process is always in the
 * host's own namespaces.
 */
async function namespaceOf(folder: string, pid: number, kind: string): Promise<string | null> {
  try {
    return await readlink(join(folder, "ns", kind));
  } catch (error) {
    if (pid === 1 && error instanceof Error && "code" in error && error.code === "EACCES") return null;
    throw error;
  }
}

/** The link in /proc of the first pid namespace, whose number the kernel fixes (PROC_PID_INIT_INO). */
const FIRST_PIDS = "pid:[4026531836]";

/**
 * Returns the process whose namespaces are the host's own. On a real host, the process with the host's own namespaces is process 2, the kernel thread
 * kthreadd, which nobody can move into another namespace. A container sees no kernel threads, so the namespaces of its init process count as its own.
 */
async function processOfHost(reading: Reading): Promise<1 | 2> {
  if ((await readlink(join(reading.root, "proc/self/ns/pid"))) !== FIRST_PIDS) return 1;
  if ((await textOf(reading, "/proc/2/comm")) === "kthreadd") return 2;
  throw new Unreadable("Process 2 is not kthreadd, so the namespaces of the host are not known.");
}

async function hostNamespaces(reading: Reading): Promise<ReadonlyMap<string, string>> {
  if ((await pidsOf(reading)).length === 0) return new Map();
  const folder = join(reading.root, "proc", String(await processOfHost(reading)));
  return new Map(
    await Promise.all(KINDS.map(async (kind) => [kind, await readlink(join(folder, "ns", kind))] as const)),
  );
}

export function readNamespaces(reading: Reading): Promise<ResidueEntry[]> {
  return settled(reading, async () => {
    const running = (await foreignNamespaces(reading)).map(({ kind, comm }) => `${kind} namespace of ${comm}`);
    const kept: string[] = [];
    for (const folder of ["/run/netns", "/run/docker/netns", "/run/snapd/ns"])
      for (const name of await namesIn(reading, folder)) kept.push(`${folder}/${withoutRandomParts(name)}`);
    return presences(reading, [...running, ...kept]);
  });
}

/**
 * Reads the mounts of the host's own mount namespace. For each other mount namespace, `readMounts` adds the file systems that the host's own
 * namespace lacks. A read of mountinfo touches no mount. The walk over the disks leaves out a disk that is mounted read-only. The residue snapshot
 * says that a disk is mounted read-only, because the walk over the disks does not read such a disk.
 */
export function readMounts(reading: Reading): Promise<ResidueEntry[]> {
  return settled(reading, async () => {
    const own = await ownMounts(reading);
    const known = new Set(own.map(({ device }) => device));
    const names: string[] = [];
    for (const { kind, pid, comm } of await foreignNamespaces(reading)) {
      if (kind !== "mnt") continue;
      try {
        const text = await readFile(join(reading.root, "proc", String(pid), "mountinfo"), "utf8");
        const others = parseMounts(text).filter(({ device, type }) => !known.has(device) && !OF_KERNEL.test(type));
        names.push(...others.map((mount) => `in the namespace of ${comm}: ${nameOfMount(mount)}`));
      } catch (error) {
        // If a process ends and has left its mount namespace, the kernel answers EINVAL to a read of the process's mounts.
        if (!isGone(error) && !(error instanceof Error && "code" in error && error.code === "EINVAL")) throw error;
      }
    }
    return [
      ...presences(reading, [...own.filter((one) => !isReadOnlyDisk(one)).map(nameOfMount), ...names]),
      ...[...new Set(own.filter(isReadOnlyDisk).map(nameOfMount))].map((name) => valued(reading, name, "read-only")),
    ];
  });
}

/** Names a mount without loop device numbers and container ids, so that the name stays equal over boots. */
function nameOfMount({ type, source, from, path }: Mount): string {
  const device = source.replace(/^\/dev\/loop\d+$/, "/dev/loop*");
  const part = from === "/" ? "" : ` (${from})`;
  return withoutRandomParts(`${type} ${device}${part} on ${path}`);
}
