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
  roomOf,
  writeAtomically,
} from "./files.ts";
import { abortFuse } from "./fuse-connections.ts";
import { GpuDetails } from "./gpu-details.ts";
import { makeHome } from "./home.ts";
import { readBootId, readHostname, readMacs, uptimeSeconds } from "./host.ts";
import { readInventory } from "./inventory.ts";
import { type Mount, readMounts } from "./mounts.ts";
import { type PciGpu, readPciGpus } from "./pci-gpus.ts";
import { type ProcessTable, processTableOf } from "./processes.ts";
import type { ResidueOrder } from "./residue.ts";
import { readDiskPicture } from "./storage/block-devices.ts";
import { launcherFor, ownProgram } from "./workers/launch.ts";
import { Workers } from "./workers/workers.ts";

/** The folder with the files of work that runs in worker processes, outside the agent's process. */
const WORK_FOLDER = "/var/lib/muster/agent/work";

const UNLOCK_TIMEOUT_MS = 60_000;

/**
 * All access to the host that the agent's tasks have. In the methods of `System`, paths are the host's own, for example `/etc/hostname`, even if a
 * folder stands for the host.
 */
export interface System {
  readonly root: string;
  readonly run: RunTool;
  readonly workers: Workers;
  readonly attempt: AttemptTool;
  read(path: string): Promise<string | null>;
  write(path: string, text: string, mode: number): Promise<void>;
  remove(path: string): Promise<void>;
  /** Removes a file, a link, or a folder with its content. `removeTree` refuses a path that symbolic links lead out of the host's root. */
  removeTree(path: string): Promise<void>;
  isPresent(path: string): Promise<boolean>;
  list(path: string): Promise<string[]>;
  listSome(path: string, most: number): Promise<string[]>;
  entry(path: string): Promise<Entry | null>;
  makeHome(path: string, uid: number, gid: number): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  /** Writes a file into a user's home, even while the user changes the home. */
  writeOwned(file: OwnedFile): Promise<void>;
  /** Removes a file or folder without following symbolic links or entering mounts, and returns the paths that are left. */
  removeConfined(path: string, limits: RemovalLimits): Promise<Removal>;
  mounts(): Promise<readonly Mount[]>;
  /** Aborts the FUSE connections of the users for whom `isTheirs` returns true, or returns null if the host does not show FUSE connections. */
  abortFuse(isTheirs: (uid: number) => boolean): number | null;
  disks(): DiskPicture;
  readonly processes: ProcessTable;
  freeBytes(path: string): Promise<number>;
  room(path: string): ReturnType<typeof roomOf>;
  /** The GPUs of NVIDIA and AMD on the PCI bus; null if the host shows no PCI bus. */
  pciGpus(): Promise<readonly PciGpu[] | null>;
  bootId(): Promise<string>;
  hostname(): Promise<string>;
  macs(): Promise<string[]>;
  uptimeSeconds(): number;
  inventory(): Promise<Inventory>;
  /** Reads what a tenant may have left on the host (architecture 14.4). */
  residue(order: ResidueOrder): Promise<ResidueSnapshot>;
  /** Finds the processes that have a character device of the given major numbers open or mapped. */
  deviceHolders(majors: ReadonlySet<number>): HolderWalk;
  /** Sends a signal to a process that `deviceHolders` found, and returns false if the process has ended. */
  signalHolder(holder: DeviceHolder, signal: "SIGTERM" | "SIGKILL"): boolean;
}

/** The argument `program` is the command line that starts a worker process: the agent's own program, or a program of a test. */
export function systemAt(root: string, log: Log, program: readonly string[] = ownProgram()): System {
  const at = (path: string): string => join(root, path);
  const bootId = () => readBootId(root);
  const hostname = () => readHostname(root);
  const run = toolsOf(root);
  const attempt = attemptsBelow(root);
  const gpuDetails = new GpuDetails(root, attempt);
  return {
    root,
    run,
    workers: new Workers(at(WORK_FOLDER), root, launcherFor(root, run, program), log),
    attempt,
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
    abortFuse: (isTheirs) => abortFuse(root, isTheirs),
    disks: () => readDiskPicture(root),
    processes: processTableOf(root),
    freeBytes: (path) => freeBytes(at(path)),
    room: (path) => roomOf(at(path)),
    pciGpus: () => readPciGpus(root),
    bootId,
    hostname,
    macs: () => readMacs(root),
    uptimeSeconds,
    inventory: async () => readInventory(root, { hostname: await hostname(), bootId: await bootId() }, gpuDetails, log),
    // The agent loads the code that reads residue only for a task that needs it, so that an idle agent needs less memory.
    residue: async (order) => (await import("./residue.ts")).readResidue(root, order),
    deviceHolders: (majors) => walkDeviceHolders(root, majors),
    signalHolder: (holder, signal) => signalHolder(root, holder, signal),
  };
}
