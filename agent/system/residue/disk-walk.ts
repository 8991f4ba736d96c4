import { type Dir, lstatSync, opendirSync } from "node:fs";
import { setImmediate as breathe } from "node:timers/promises";
import { parseAccounts, parseGroups } from "../../accounts/account-files.ts";
import { isMissing } from "../files.ts";
import { ownMounts } from "./foreign-mounts.ts";
import { bytesOfPath, FoundFiles, type ListBounds, textOfPath } from "./found-files.ts";
import { type Reading, textOf, Unreadable } from "./reading.ts";

/** Folders that the walk over the disks leaves out, because containers and snaps keep files of users there that the host does not know. */
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
/** Matches the mount points of the system's disks. The walk over the disks leaves out data disks, which the storage cleanup cleans. */
const SYSTEM_MOUNT = /^\/(boot|home|opt|root|srv|tmp|usr|var)(\/.*)?$/;
const DISK_TYPES = /^(ext[234]|xfs|btrfs|f2fs|bcachefs|zfs|vfat)$/;
/** How many files the walk over the disks reads before a pause. During a pause, the agent can stop a walk whose deadline has passed. */
const AT_ONCE = 1_000;
const MEGABYTE = 1024 * 1024;

/** How many paths a walk over the disks keeps in memory, because a tenant may make millions of files. */
export interface WalkBounds {
  readonly setuid: ListBounds;
  readonly executables: ListBounds;
  readonly ownerless: ListBounds;
  readonly ofTenant: ListBounds;
  readonly folders: ListBounds;
}
const FEW: ListBounds = { most: 400, maxBytes: MEGABYTE };
const BOUNDS: WalkBounds = {
  setuid: FEW,
  executables: { most: 300_000, maxBytes: 48 * MEGABYTE },
  ownerless: FEW,
  ofTenant: FEW,
  folders: { most: 300_000, maxBytes: 48 * MEGABYTE },
};

/** A file that the walk over the disks found. In the member `path`, each byte of the file's path on the disk is one character. */
export interface Found {
  readonly path: string;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

export interface DiskWalk {
  readonly setuid: FoundFiles<Found>;
  readonly executables: FoundFiles<{ readonly path: string }>;
  readonly ownerless: FoundFiles<Found>;
  readonly ofTenant: FoundFiles<Found>;
}

/**
 * Walks once over the system's disks, and collects the files of several residue items. The walk over the disks enters no other file system, so it
 * never waits for a server. The walk over the disks reports a folder of the tenant, but not the tenant's files in that folder.
 */
export async function walkDisks(reading: Reading, bounds: WalkBounds = BOUNDS): Promise<DiskWalk> {
  const known = await knownIds(reading);
  const walk: DiskWalk = {
    setuid: new FoundFiles(bounds.setuid),
    executables: new FoundFiles(bounds.executables),
    ownerless: new FoundFiles(bounds.ownerless),
    ofTenant: new FoundFiles(bounds.ofTenant),
  };
  const starts = ["", ...(await systemMounts(reading))].map((point) => Buffer.from(point).toString("latin1"));
  for (const start of starts) await walkFrom(reading, known, start, walk, bounds.folders);
  return walk;
}

async function systemMounts(reading: Reading): Promise<string[]> {
  const mounts = await ownMounts(reading);
  return [
    ...new Set(
      mounts.filter(({ path, type }) => SYSTEM_MOUNT.test(path) && DISK_TYPES.test(type)).map(({ path }) => path),
    ),
  ];
}

interface KnownIds {
  readonly users: ReadonlySet<number>;
  readonly groups: ReadonlySet<number>;
}

async function knownIds(reading: Reading): Promise<KnownIds> {
  const accounts = parseAccounts(await textOf(reading, "/etc/passwd"));
  const groups = parseGroups(await textOf(reading, "/etc/group"));
  return { users: new Set(accounts.map(({ uid }) => uid)), groups: new Set(groups.map(({ gid }) => gid)) };
}

async function walkFrom(
  reading: Reading,
  known: KnownIds,
  start: string,
  walk: DiskWalk,
  bounds: ListBounds,
): Promise<void> {
  const top = statOf(reading, start === "" ? "/" : start);
  if (top === null) return;
  const open = new OpenFolders(bounds);
  open.push({ folder: start, ofTenant: false, ownerless: false });
  let count = 0;
  for (let here = open.pop(); here !== undefined; here = open.pop()) {
    reading.signal.throwIfAborted();
    for (const name of namesOf(reading, here.folder === "" ? "/" : here.folder)) {
      count += 1;
      if (count % AT_ONCE === 0) await breathe();
      reading.signal.throwIfAborted();
      const path = `${here.folder}/${name}`;
      const stats = statOf(reading, path);
      if (stats === null || PRUNED.has(path)) continue;
      if (stats.isDirectory() && stats.dev !== top.dev) continue;
      const found: Found = { path, mode: stats.mode & 0o7777, uid: stats.uid, gid: stats.gid };
      const ofTenant = stats.uid === reading.tenant?.uid;
      const ownerless = !ofTenant && !(known.users.has(stats.uid) && known.groups.has(stats.gid));
      if (ofTenant && !here.ofTenant) walk.ofTenant.add(found);
      if (ownerless && !here.ownerless) walk.ownerless.add(found);
      if (stats.isDirectory()) open.push({ folder: path, ofTenant, ownerless });
      else if (stats.isFile()) {
        if ((stats.mode & 0o6000) !== 0) walk.setuid.add(found);
        if ((stats.mode & 0o111) !== 0) walk.executables.add({ path });
      }
    }
  }
}

interface OpenFolder {
  readonly folder: string;
  readonly ofTenant: boolean;
  readonly ownerless: boolean;
}

/**
 * The folders that a walk over the disks has found but not read yet. If a walk over the disks finds too many folders, the walk ends, and its residue
 * items are unreadable.
 */
class OpenFolders {
  readonly #folders: OpenFolder[] = [];
  #bytes = 0;
  readonly #bounds: ListBounds;
  constructor(bounds: ListBounds) {
    this.#bounds = bounds;
  }

  push(one: OpenFolder): void {
    this.#folders.push(one);
    this.#bytes += one.folder.length;
    if (this.#folders.length > this.#bounds.most || this.#bytes > this.#bounds.maxBytes)
      throw new Unreadable(`There are too many folders to walk over, for example ${textOfPath(one.folder)}.`);
  }

  pop(): OpenFolder | undefined {
    const one = this.#folders.pop();
    this.#bytes -= one?.folder.length ?? 0;
    return one;
  }
}

const onDisk = ({ root }: Reading, path: string): Buffer =>
  Buffer.concat([Buffer.from(root === "/" ? "" : root), bytesOfPath(path)]);

function statOf(reading: Reading, path: string) {
  try {
    return lstatSync(onDisk(reading, path));
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

/**
 * Returns the names in a folder, with each byte of a name as one character. `namesOf` reads the names of a folder in portions, because a tenant may
 * have put millions of files there.
 */
function* namesOf(reading: Reading, path: string): Generator<string> {
  const folder = openFolder(onDisk(reading, path));
  if (folder === null) return;
  try {
    for (let entry = folder.readSync(); entry !== null; entry = folder.readSync())
      yield (entry.name as unknown as Buffer).toString("latin1");
  } finally {
    folder.closeSync();
  }
}

function openFolder(path: Buffer): Dir | null {
  try {
    return opendirSync(path, { encoding: "buffer", bufferSize: 512 } as never);
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}
