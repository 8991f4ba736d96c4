import { join } from "node:path";
import type { Inventory } from "../../shared/inventory.ts";
import type { ResidueSnapshot } from "../../shared/residue/snapshot.ts";
import type { Log } from "../log.ts";
import type { DiskPicture } from "../storage/disk-rules.ts";
import { type AttemptTool, attemptsBelow } from "./attempt.ts";
import { type Entry, entryAt, type OwnedFile, writeOwned } from "./confined.ts";
import { type Removal, type RemovalLimits, removeConfined } from "./confined-removal.ts";
import { type DeviceHolder, type HolderWalk, signalHolder, walkDeviceHolders } from "./device-holders.ts";
import { type RunTool, toolsOf } from "./exec.ts";
import {
  freeBytes,
  isPresent,
  listFolder,
  listSome,
  readText,
  removeFile,
  removeTree,
  renameFile,
  writeAtomically,
} from "./files.ts";
import { makeHome } from "./home.ts";
import { readBootId, readHostname, readMacs, uptimeSeconds } from "./host.ts";
import { readInventory } from "./inventory.ts";
import { type Mount, readMounts } from "./mounts.ts";
import { type ProcessTable, processTableOf } from "./processes.ts";
import type { ResidueOrder } from "./residue.ts";
import { readDiskPicture } from "./storage/block-devices.ts";
import { launcherFor, ownProgram } from "./workers/launch.ts";
import { Workers } from "./workers/workers.ts";

/** The folder with the files of work that runs in worker processes, outside the agent's process. */
const WORK_FOLDER = "/var/lib/muster/agent/work";

const UNLOCK_TIMEOUT_MS = 60_000;

/**
 * All operations on the host that the agent may use. The handlers of tasks have no other access to the host than the interface `System`. Paths in the
 * methods of `System` are the host's own paths, for example `/etc/hostname`, without `root`.
 */
export interface System {
  readonly root: string;
  readonly run: RunTool;
  /** Runs heavy or possibly hanging work in worker processes, outside the agent's process. */
  readonly workers: Workers;
  /** Runs a tool that may hang in a driver. `attempt` ends a tool after the tool's deadline, or abandons a tool that hangs in the kernel. */
  readonly attempt: AttemptTool;
  read(path: string): Promise<string | null>;
  write(path: string, text: string, mode: number): Promise<void>;
  remove(path: string): Promise<void>;
  /** Removes a file, a link, or a folder with its content. `removeTree` refuses a path that symbolic links lead out of the folder `root`. */
  removeTree(path: string): Promise<void>;
  isPresent(path: string): Promise<boolean>;
  /** Returns the sorted names in a folder. For a missing folder the list of names is empty. */
  list(path: string): Promise<string[]>;
  /** Returns the names of at most `most` entries of a folder, because a tenant may have filled the folder with millions of files. */
  listSome(path: string, most: number): Promise<string[]>;
  /**
   * The kind, owner and mode of the file or folder at a path, without following a symbolic link at the path's end. `entry` returns null if nothing is
   * at the path.
   */
  entry(path: string): Promise<Entry | null>;
  makeHome(path: string, uid: number, gid: number): Promise<void>;
  /** Renames a file in a folder that only root can change. */
  rename(from: string, to: string): Promise<void>;
  /** Writes a file into a user's home, which the user may change during the write. */
  writeOwned(file: OwnedFile): Promise<void>;
  /** Removes a file or folder without following symbolic links and without entering mounts, and says what is left. */
  removeConfined(path: string, limits: RemovalLimits): Promise<Removal>;
  mounts(): Promise<readonly Mount[]>;
  /** The host's block devices, and what uses them. */
  disks(): DiskPicture;
  readonly processes: ProcessTable;
  freeBytes(path: string): Promise<number>;
  bootId(): Promise<string>;
  hostname(): Promise<string>;
  macs(): Promise<string[]>;
  uptimeSeconds(): number;
  inventory(): Promise<Inventory>;
  /** Reads what a tenant may have left on the host (architecture 14.4). */
  residue(order: ResidueOrder): Promise<ResidueSnapshot>;
  /** Finds the processes that have a character device of the given major numbers open or mapped. */
  deviceHolders(majors: ReadonlySet<number>): HolderWalk;
  /** Sends a signal to a process that `deviceHolders` found. `signalHolder` returns false if the process has already ended. */
  signalHolder(holder: DeviceHolder, signal: "SIGTERM" | "SIGKILL"): boolean;
}

/** The argument `program` is the command line of a worker process: the agent's own program, or a program of a test. */
export function systemAt(root: string, log: Log, program: readonly string[] = ownProgram()): System {
  const at = (path: string): string => join(root, path);
  const bootId = () => readBootId(root);
  const hostname = () => readHostname(root);
  const run = toolsOf(root);
  return {
    root,
    run,
    workers: new Workers(at(WORK_FOLDER), root, launcherFor(root, run, program), log),
    attempt: attemptsBelow(root),
    read: (path) => readText(at(path)),
    write: (path, text, mode) => writeAtomically(at(path), text, mode),
    remove: (path) => removeFile(at(path)),
    removeTree: (path) => removeTree(root, at(path)),
    isPresent: (path) => isPresent(at(path)),
    list: (path) => listFolder(at(path)),
    listSome: (path, most) => listSome(at(path), most),
    entry: (path) => entryAt(root, path),
    makeHome: (path, uid, gid) => makeHome(root, path, uid, gid),
    rename: (from, to) => renameFile(at(from), at(to)),
    writeOwned: (file) => writeOwned(root, file),
    removeConfined: (path, limits) =>
      removeConfined(root, path, limits, async (paths) => {
        await run("xargs", ["-0", "chattr", "-f", "-i", "-a", "--"], UNLOCK_TIMEOUT_MS, paths);
      }),
    mounts: () => readMounts(root),
    disks: () => readDiskPicture(root),
    processes: processTableOf(root),
    freeBytes: (path) => freeBytes(at(path)),
    bootId,
    hostname,
    macs: () => readMacs(root),
    uptimeSeconds,
    inventory: async () => readInventory(await hostname(), await bootId(), log),
    // The agent loads the code that reads residue only when a task needs the code, so that an idle agent uses less memory.
    residue: async (order) => (await import("./residue.ts")).readResidue(root, order),
    deviceHolders: (majors) => walkDeviceHolders(root, majors),
    signalHolder: (holder, signal) => signalHolder(root, holder, signal),
  };
}
