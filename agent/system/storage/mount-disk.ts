import { closeSync, fchmodSync, fchownSync, fstatSync, fsyncSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { withoutCredentials } from "../../../shared/without-credentials.ts";
import { messageOf } from "../../message-of.ts";
import { type DiskPart, missingOptions, placedMount, type ToolCall } from "../../storage/disk-layout.ts";
import type { BlockDevice } from "../../storage/disk-rules.ts";
import type { AttemptTool } from "../attempt.ts";
import { type Mount, parseMounts } from "../mounts.ts";
import { codeOf, type OpenFolder, openFolderBelow } from "./descriptors.ts";
import { openFilesBelow } from "./open-files.ts";

/**
 * Before an unmount ends, the kernel may have to write much data to the disk. An unmount must take less time than the agent gives a worker process
 * before the purge begins.
 */
const UNMOUNT_TIMEOUT_MS = 120_000;
const MOUNT_TIMEOUT_MS = 180_000;
const SETTLE_SECONDS = 60;

/** Returns null if the tool ended well, and otherwise what the tool printed, without secrets. */
export async function fault(
  { tool, args }: ToolCall,
  attempt: AttemptTool,
  timeoutMs: number,
  input?: string,
): Promise<string | null> {
  const end = await attempt(tool, args, { timeoutMs, ...(input === undefined ? {} : { input }) });
  if (end.kind === "missing") return end.message;
  if (end.kind === "hung") return `${tool} did not end in time (state ${end.state}).`;
  if (end.exitCode === 0) return null;
  return `${tool} ended with status ${end.exitCode}: ${withoutCredentials(`${end.stderr} ${end.stdout}`).trim()}.`;
}

const mountsOf = (root: string): Mount[] => parseMounts(readFileSync(join(root, "proc/self/mountinfo"), "latin1"));
export const mountsAt = (root: string, path: string): Mount[] => mountsOf(root).filter((one) => one.path === path);

/** True if the mount point of `part`, a file system of a data disk, has exactly one mount, and this is the file system on the device `number`. */
export function isAtPlace(root: string, { path }: DiskPart, number: string | null): boolean {
  const [mount, more] = mountsAt(root, path);
  return mount !== undefined && more === undefined && mount.device === number && mount.from === "/";
}

/** Names the processes that use a file below a mount point; null if there are none. */
export function usersOf(root: string, path: string): string | null {
  const { files } = openFilesBelow(join(root, path));
  const pids = [...new Set(files.map(({ pid }) => pid))].slice(0, 5);
  if (pids.length === 0) return null;
  return `The processes ${pids.map((pid) => `${nameOf(root, pid)} (${pid})`).join(", ")} use files in ${path}. End them first.`;
}

function nameOf(root: string, pid: number): string {
  try {
    return readFileSync(join(root, "proc", String(pid), "comm"), "utf8").trim();
  } catch {
    // A process that used the mount point has ended since the agent found it.
    return "?";
  }
}

/** The agent never unmounts lazily, because a lazy unmount leaves the file system in use. Returns why the unmount failed, or null if it succeeded. */
export async function unmount(root: string, path: string, attempt: AttemptTool): Promise<string | null> {
  const failed = await fault({ tool: "umount", args: ["--", path] }, attempt, UNMOUNT_TIMEOUT_MS);
  if (failed !== null) return failed;
  return mountsAt(root, path).length === 0 ? null : `${path} is still mounted after its unmount.`;
}

/** Waits until udev has made the links in /dev/disk, by which /etc/fstab names file systems. A host without udev has no links in /dev/disk. */
export async function settleDevices(attempt: AttemptTool): Promise<string | null> {
  const args = ["settle", `--timeout=${SETTLE_SECONDS}`];
  const end = await attempt("udevadm", args, { timeoutMs: (SETTLE_SECONDS + 10) * 1000 });
  if (end.kind === "missing" || (end.kind === "ended" && end.exitCode === 0)) return null;
  return "udevadm settle did not end well.";
}

/** The block device with a file system, by its present name and its number. */
export type PartDevice = Pick<BlockDevice, "name" | "number">;

type MountFault = { readonly reason: "mount_failed" | "mount_differs" | "path_differs"; readonly detail: string };

/**
 * Mounts a file system as its line of /etc/fstab or its mount unit says, unless the file system is already mounted. Returns why the file system is
 * not mounted as its line of /etc/fstab or its mount unit says, or null if it is.
 */
export async function mountPart(
  root: string,
  part: DiskPart,
  device: PartDevice,
  attempt: AttemptTool,
): Promise<MountFault | null> {
  const differs = (detail: string) => ({ reason: "mount_differs" as const, detail });
  const isOurs = mountsAt(root, part.path).length === 0;
  if (isOurs) {
    const failed = await mountAtPlace(root, part, device, attempt);
    if (failed !== null) return failed;
  }
  const [mount, more] = mountsAt(root, part.path);
  if (mount === undefined) return { reason: "mount_failed", detail: `${part.path} is not mounted after its mount.` };
  if (more !== undefined || mount.device !== device.number || mount.from !== "/" || mount.type !== part.type) {
    // If another device has the same label or UUID, `mount` may have mounted the other device's file system. The file system of another device must
    // not stay at the mount point, so the agent unmounts it if the agent itself mounted it.
    const stays = isOurs ? await unmount(root, part.path, attempt) : null;
    return differs(
      `At ${part.path} another file system ${isOurs && stays === null ? "was" : "is"} mounted (${mount.type} on ${mount.source}). ${stays ?? ""}`.trim(),
    );
  }
  const missing = missingOptions(part.options, mount.options);
  return missing.length === 0 ? null : differs(`The mount lacks the options ${missing.join(", ")}.`);
}

/**
 * Mounts a file system at a mount point that is a folder. Between the unmount of a disk for its purge and its new mount, a tenant's process may put a
 * symbolic link into the path of the mount point. The agent opens the folder without following a symbolic link, and mounts at the open folder, which
 * nobody can replace. A mount unit only names a path. After each mount, the agent checks where the file system is, and undoes a mount at another
 * place than the mount point.
 */
async function mountAtPlace(
  root: string,
  part: DiskPart,
  device: PartDevice,
  attempt: AttemptTool,
): Promise<MountFault | null> {
  let folder: OpenFolder;
  try {
    folder = openFolderBelow(root, part.path);
  } catch (error) {
    const detail = `The path ${part.path} cannot be opened without a symbolic link (${codeOf(error)}). Make it a folder.`;
    return { reason: "path_differs", detail };
  }
  const before = new Set(mountsOf(root).map(({ id }) => id));
  const failed = await fault(
    placedMount(part, `/dev/${device.name}`, `/proc/${process.pid}/fd/${folder.fd}`),
    attempt,
    MOUNT_TIMEOUT_MS,
  ).finally(() => closeSync(folder.fd));
  if (mountsAt(root, part.path).length === 0) {
    const strayed = mountsOf(root).filter((one) => one.device === device.number && !before.has(one.id));
    if (strayed.length > 0) return undoStrayed(root, part, strayed, attempt);
  }
  return failed === null ? null : { reason: "mount_failed", detail: failed };
}

async function undoStrayed(
  root: string,
  { path }: DiskPart,
  strayed: readonly Mount[],
  attempt: AttemptTool,
): Promise<MountFault> {
  const left: string[] = [];
  for (const one of strayed) if ((await unmount(root, one.path, attempt)) !== null) left.push(one.path);
  const end = left.length === 0 ? "The mount was undone." : `Run umount ${left.join(" ")}.`;
  const detail = `Something changed the path ${path}, so the mount went to ${strayed.map((one) => one.path).join(", ")}. ${end}`;
  return { reason: "path_differs", detail };
}

/** Gives the root folder of a mounted file system its owner and mode. Returns why that failed, or null. */
export function restoreFolder(root: string, { path, uid, gid, mode }: DiskPart): string | null {
  try {
    const { fd } = openFolderBelow(root, path);
    try {
      fchownSync(fd, uid, gid);
      fchmodSync(fd, mode);
      fsyncSync(fd);
      const now = fstatSync(fd);
      return now.uid === uid && now.gid === gid && (now.mode & 0o7777) === mode
        ? null
        : `The folder ${path} does not keep its owner and mode.`;
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    return `Owner and mode of ${path} cannot be set: ${messageOf(error)}.`;
  }
}
