import { type Dirent, lstatSync, readdirSync } from "node:fs";
import { setImmediate as breathe } from "node:timers/promises";
import { isMissing } from "../files.ts";
import { ownMounts } from "./foreign-mounts.ts";
import { linesOf, type Reading, textOf } from "./reading.ts";

/** Folders of engines for containers and snaps, whose files belong to users that the host does not know. */
const PRUNED = new Set([
  ...[
    "docker",
    "containerd",
    "containers",
    "lxcfs",
    "lxd",
    "incus",
    "kubelet",
    "rancher",
    "enroot",
    "machines",
    "snapd",
  ].map((name) => `/var/lib/${name}`),
  ...["/snap", "/var/snap", "/proc", "/sys", "/dev", "/run"],
]);
/** Mount points of the system. A data disk is cleaned by the cleanup of the storage. */
const SYSTEM_MOUNT = /^\/(boot|home|opt|root|srv|tmp|usr|var)(\/.*)?$/;
const DISK_TYPES = /^(ext[234]|xfs|btrfs|f2fs|bcachefs|zfs|vfat)$/;
/** How many folders are read in one go. Between two goes the deadline of the item may end the walk. */
const AT_ONCE = 50;

/** A file with its path as it is on the disk: one character for each byte. */
export interface Found {
  readonly path: string;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

export interface DiskWalk {
  readonly setuid: readonly Found[];
  readonly executables: readonly string[];
  readonly ownerless: readonly Found[];
  readonly ofTenant: readonly Found[];
  readonly files: number;
}

/** The path of a file on the disk, as bytes. A name may contain bytes that are not UTF-8. */
const bytesOf = (path: string): Buffer => Buffer.from(path, "latin1");
export const textOfPath = (path: string): string => bytesOf(path).toString("utf8");

/**
 * Walks once over the system's disks and collects files for several items. The walk does not enter other file systems, so it never waits for a
 * server. A file in a folder of the tenant's is reported by the folder alone.
 */
export async function walkDisks(reading: Reading): Promise<DiskWalk> {
  const known = await knownIds(reading);
  const walk = {
    setuid: [] as Found[],
    executables: [] as string[],
    ownerless: [] as Found[],
    ofTenant: [] as Found[],
    files: 0,
  };
  const starts = ["", ...(await systemMounts(reading))].map((point) => Buffer.from(point).toString("latin1"));
  for (const start of starts) await walkFrom(reading, known, start, walk);
  return walk;
}

async function systemMounts(reading: Reading): Promise<string[]> {
  const mounts = await ownMounts(reading);
  return [
    ...new Set(
      mounts.filter(({ point, type }) => SYSTEM_MOUNT.test(point) && DISK_TYPES.test(type)).map(({ point }) => point),
    ),
  ];
}

interface KnownIds {
  readonly users: ReadonlySet<number>;
  readonly groups: ReadonlySet<number>;
}

async function knownIds(reading: Reading): Promise<KnownIds> {
  const ids = async (file: string): Promise<Set<number>> =>
    new Set(linesOf(await textOf(reading, file)).map((line) => Number(line.split(":")[2])));
  return { users: await ids("/etc/passwd"), groups: await ids("/etc/group") };
}

type Collected = {
  -readonly [K in keyof DiskWalk]: DiskWalk[K] extends number
    ? number
    : DiskWalk[K] extends readonly (infer T)[]
      ? T[]
      : never;
};

async function walkFrom(reading: Reading, known: KnownIds, start: string, walk: Collected): Promise<void> {
  const top = statOf(reading, start === "" ? "/" : start);
  if (top === null) return;
  const open = [{ folder: start, ofTenant: false, ownerless: false }];
  for (let count = 1; open.length > 0; count += 1) {
    if (count % AT_ONCE === 0) await breathe();
    reading.signal.throwIfAborted();
    const here = open.pop();
    if (here === undefined) return;
    for (const entry of entriesOf(reading, here.folder === "" ? "/" : here.folder)) {
      const path = `${here.folder}/${entry.name}`;
      const stats = statOf(reading, path);
      if (stats === null || PRUNED.has(path)) continue;
      if (stats.isDirectory() && stats.dev !== top.dev) continue;
      walk.files += 1;
      const found: Found = { path, mode: stats.mode & 0o7777, uid: stats.uid, gid: stats.gid };
      const ofTenant = stats.uid === reading.tenant?.uid;
      const ownerless = !ofTenant && !(known.users.has(stats.uid) && known.groups.has(stats.gid));
      if (ofTenant && !here.ofTenant) walk.ofTenant.push(found);
      if (ownerless && !here.ownerless) walk.ownerless.push(found);
      if (stats.isDirectory()) open.push({ folder: path, ofTenant, ownerless });
      else if (stats.isFile()) {
        if ((stats.mode & 0o6000) !== 0) walk.setuid.push(found);
        if ((stats.mode & 0o111) !== 0) walk.executables.push(path);
      }
    }
  }
}

function statOf({ root }: Reading, path: string) {
  try {
    return lstatSync(Buffer.concat([Buffer.from(root === "/" ? "" : root), bytesOf(path)]));
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

function entriesOf({ root }: Reading, folder: string): readonly Dirent<string>[] {
  try {
    const path = Buffer.concat([Buffer.from(root === "/" ? "" : root), bytesOf(folder)]);
    return readdirSync(path, { withFileTypes: true, encoding: "latin1" });
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}
