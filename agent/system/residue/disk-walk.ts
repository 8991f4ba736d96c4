import { type Dir, lstatSync, opendirSync, type Stats } from "node:fs";
import { setImmediate as breathe } from "node:timers/promises";
import { parseAccounts, parseGroups } from "../../accounts/account-files.ts";
import { messageOf } from "../../message-of.ts";
import { isMissing } from "../files.ts";
import { notMounted, unmountedDisks } from "../listed-mounts.ts";
import { uidOfJournal } from "../user-journals.ts";
import { ownMounts } from "./foreign-mounts.ts";
import { bytesOfPath, FoundFiles, type ListBounds, textOfPath } from "./found-files.ts";
import { type Reading, textOf, Unreadable } from "./reading.ts";
import { checkStillMounted, isPruned, planWalk, throwIfDisk, type WalkPlan, type WalkStart } from "./walked-mounts.ts";

/**
 * How many files the walk over the disks reads before a pause. During a pause, the agent can stop a walk over the disks whose deadline has passed.
 */
const AT_ONCE = 1_000;
const MEGABYTE = 1024 * 1024;

/**
 * How long a walk over the files of the host's disks may take, in milliseconds. The first item of the residue snapshot that needs the walk over the
 * disks has a deadline of 20 minutes.
 */
const WALK_MS = 19 * 60_000;

/** The walk over the files of the disks is limited in time and in the number of paths that it keeps, because a tenant may make millions of files. */
export interface WalkBounds {
  readonly setuid: ListBounds;
  readonly executables: ListBounds;
  readonly ownerless: ListBounds;
  readonly ofTenant: ListBounds;
  readonly folders: ListBounds;
  readonly ms: number;
}
const FEW: ListBounds = { most: 400, maxBytes: MEGABYTE };
const BOUNDS: WalkBounds = {
  setuid: FEW,
  executables: { most: 300_000, maxBytes: 48 * MEGABYTE },
  ownerless: FEW,
  ofTenant: FEW,
  folders: { most: 300_000, maxBytes: 48 * MEGABYTE },
  ms: WALK_MS,
};

/** In the member `path`, each byte of the file's path on the disk is one character. */
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
 * Walks once over each local file system of the host, and collects the files of several items of the residue snapshot, for example setuid files. The
 * walk over the disks never enters a mount of a network file system, so it never waits for a server. The walk over the disks lists a folder that
 * belongs to the tenant, but not the tenant's files in that folder.
 */
export async function walkDisks(reading: Reading, bounds: WalkBounds = BOUNDS): Promise<DiskWalk> {
  const known = await knownIds(reading);
  const found: DiskWalk = {
    setuid: new FoundFiles(bounds.setuid),
    executables: new FoundFiles(bounds.executables),
    ownerless: new FoundFiles(bounds.ownerless),
    ofTenant: new FoundFiles(bounds.ofTenant),
  };
  const [unmounted] = unmountedDisks(reading.root);
  if (unmounted !== undefined) throw new Unreadable(notMounted(textOfPath(unmounted)));
  const plan = planWalk(await ownMounts(reading, "latin1"));
  const walk: Walk = { reading, known, plan, found, bounds, began: performance.now(), count: 0 };
  for (const start of plan.starts) await walkFrom(walk, start);
  checkStillMounted(plan, await ownMounts(reading, "latin1"));
  return found;
}

interface Walk {
  readonly reading: Reading;
  readonly known: KnownIds;
  readonly plan: WalkPlan;
  readonly found: DiskWalk;
  readonly bounds: WalkBounds;
  readonly began: number;
  /** How many files and folders the walk over the disks has read. */
  count: number;
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

async function walkFrom(walk: Walk, start: WalkStart): Promise<void> {
  const { reading, plan } = walk;
  const top = statOf(reading, start.folder === "" ? "/" : start.folder);
  if (top === null) {
    if (start.isOnDisk) throw new Unreadable(`The mounted disk ${textOfPath(start.folder)} cannot be reached.`);
    return;
  }
  if (start.folder !== "") keep(walk, NOBODY, start.folder, top);
  // The mount point of a file system may be a file instead of a folder.
  if (!top.isDirectory()) return;
  const open = new OpenFolders(walk.bounds.folders);
  open.push({ folder: start.folder, device: top.dev, ...ownerOf(walk, top) });
  for (let here = open.pop(); here !== undefined; here = open.pop()) {
    reading.signal.throwIfAborted();
    for (const name of namesOf(reading, here.folder === "" ? "/" : here.folder)) {
      walk.count += 1;
      if (walk.count % AT_ONCE === 0) await breathe();
      reading.signal.throwIfAborted();
      throwIfLate(walk, start);
      const path = `${here.folder}/${name}`;
      if (isPruned(path) || plan.points.has(path)) continue;
      const stats = statOf(reading, path);
      if (stats === null) continue;
      if (stats.isDirectory() && stats.dev !== here.device && !start.hasSubvolumes) {
        throwIfDisk(path, await ownMounts(reading, "latin1"));
        continue;
      }
      keep(walk, here, path, stats);
      if (stats.isDirectory()) open.push({ folder: path, device: stats.dev, ...ownerOf(walk, stats) });
    }
  }
}

function throwIfLate({ began, count, bounds }: Walk, { folder }: WalkStart): void {
  if (performance.now() - began <= bounds.ms) return;
  throw new Unreadable(
    `There are too many files: ${count} were read in ${bounds.ms / 1000} s, and the search was at the disk of ${textOfPath(folder === "" ? "/" : folder)}. If tenants write there, list it in the profile's scratch_folders or data_shares. Mount data of the site read-only.`,
  );
}

/** What the walk over the disks records about a file's owner: whether it is the tenant, or a user or group that the host does not know. */
interface Owner {
  readonly ofTenant: boolean;
  readonly ownerless: boolean;
}

const NOBODY: Owner = { ofTenant: false, ownerless: false };

function ownerOf({ reading, known }: Walk, { uid, gid }: Stats): Owner {
  const ofTenant = uid === reading.tenant?.uid;
  return { ofTenant, ownerless: !ofTenant && !(known.users.has(uid) && known.groups.has(gid)) };
}

/**
 * Adds a found file or folder to the lists that the walk over the disks makes, for example of setuid files or of the tenant's files. If the walk over
 * the disks lists a folder because of its owner, it does not list the folder's files because of the same owner.
 */
function keep(walk: Walk, folder: Owner, path: string, stats: Stats): void {
  const { setuid, executables, ownerless, ofTenant } = walk.found;
  const one: Found = { path, mode: stats.mode & 0o7777, uid: stats.uid, gid: stats.gid };
  const owner = ownerOf(walk, stats);
  if (owner.ofTenant && !folder.ofTenant) ofTenant.add(one);
  else if (stats.isFile() && isJournalOfTenant(walk, path))
    ofTenant.add({ ...one, uid: uidOfJournal(path) ?? one.uid });
  if (owner.ownerless && !folder.ownerless) ownerless.add(one);
  if (!stats.isFile()) return;
  if ((stats.mode & 0o6000) !== 0) setuid.add(one);
  if ((stats.mode & 0o111) !== 0) executables.add({ path });
}

/** The file of a user's systemd journal belongs to root, but holds what the user's programs printed. */
const isJournalOfTenant = ({ reading }: Walk, path: string): boolean =>
  reading.tenant !== null && uidOfJournal(path) === reading.tenant.uid;

interface OpenFolder extends Owner {
  readonly folder: string;
  readonly device: number;
}

/**
 * The folders that a walk over the disks has found but not read yet. If a walk over the disks finds too many folders, it ends, and the items of the
 * residue snapshot that need it are unreadable.
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

function statOf(reading: Reading, path: string): Stats | null {
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
    throw new Unreadable(`The folder ${textOfPath(path.toString("latin1"))} cannot be read: ${messageOf(error)}`);
  }
}
