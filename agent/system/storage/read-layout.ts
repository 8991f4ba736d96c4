import { closeSync, existsSync, fstatSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import {
  type DiskLayout,
  type DiskPart,
  FILE_SYSTEMS,
  FSTAB,
  isNamedBy,
  isOptionalAtBoot,
  lineFault,
  type MountLine,
  makeCommand,
  mountUnitOf,
  type Probe,
  parseFstab,
  parseMountUnit,
  parseProbe,
  partitionsIn,
  typeFault,
} from "../../storage/disk-layout.ts";
import type { BlockDevice, DiskMount, DiskPicture } from "../../storage/disk-rules.ts";
import type { AttemptTool } from "../attempt.ts";
import { deviceNumber } from "../device-holders.ts";
import { isMissing } from "../files.ts";
import { type Mount, parseMounts } from "../mounts.ts";
import { isSystemdAt } from "../workers/launch.ts";
import { toolPath } from "./attributes.ts";
import { codeOf, openFolderBelow } from "./descriptors.ts";

export interface LayoutRefusal {
  readonly ok: false;
  readonly reason:
    | "layout_unsupported"
    | "layout_unreadable"
    | "mount_not_listed"
    | "boot_needs_mount"
    | "tool_missing";
  readonly detail: string;
}
export type LayoutRead = { readonly ok: true; readonly layout: DiskLayout } | LayoutRefusal;

const ASK_TIMEOUT_MS = 60_000;
const UNIT_FOLDERS = ["etc/systemd/system", "run/systemd/system", "usr/lib/systemd/system", "lib/systemd/system"];

const refuse = (reason: LayoutRefusal["reason"], detail: string): LayoutRefusal => ({ ok: false, reason, detail });
const isRefusal = (one: object): one is LayoutRefusal => "ok" in one && one.ok === false;

/** Asks `blkid` what is on a device. An empty answer means that `blkid` knows nothing on the device. Null means that the device is not readable. */
export async function probeDevice(name: string, attempt: AttemptTool): Promise<Probe | null> {
  const end = await attempt("blkid", ["-p", "-o", "export", `/dev/${name}`], { timeoutMs: ASK_TIMEOUT_MS });
  if (end.kind !== "ended" || (end.exitCode !== 0 && end.exitCode !== 2)) return null;
  // The status 2 also stands for a device that blkid cannot read, and blkid then says so.
  return end.exitCode === 2 && end.stderr.trim() !== "" ? null : parseProbe(end.stdout);
}

/**
 * Reads what the agent must make again after the purge of a mounted disk. `readLayout` refuses a disk whose file systems the agent cannot make again as
 * they are, or that nothing would mount again.
 */
export async function readLayout(
  root: string,
  device: BlockDevice,
  picture: DiskPicture,
  mounts: readonly DiskMount[],
  attempt: AttemptTool,
): Promise<LayoutRead> {
  const none = missingTool(root, ["blkid", "mount", "umount"]);
  if (none !== null) return none;
  const all = parseMounts(readFileSync(join(root, "proc/self/mountinfo"), "latin1"));
  const parts: DiskPart[] = [];
  for (const mount of mounts) {
    const part = await readPart(root, device, picture, mount, all, attempt);
    if (isRefusal(part)) return part;
    parts.push(part);
  }
  const table = parts.some(({ partition }) => partition !== null) ? await readTable(device, parts, attempt) : null;
  if (table !== null && typeof table !== "string") return table;
  return (
    missingTool(
      root,
      parts.map((part) => makeCommand(part, "").tool),
    ) ?? { ok: true, layout: { table, parts } }
  );
}

function missingTool(root: string, tools: readonly string[]): LayoutRefusal | null {
  const missing = tools.find((tool) => toolPath(root, tool) === null);
  return missing === undefined
    ? null
    : refuse(
        "tool_missing",
        `The host has no ${missing}, which the agent needs to restore the file system. Install it.`,
      );
}

async function readTable(
  device: BlockDevice,
  parts: readonly DiskPart[],
  attempt: AttemptTool,
): Promise<string | LayoutRefusal> {
  const end = await attempt("sfdisk", ["--dump", `/dev/${device.name}`], { timeoutMs: ASK_TIMEOUT_MS });
  if (end.kind === "missing") return refuse("tool_missing", end.message);
  if (end.kind !== "ended" || end.exitCode !== 0)
    return refuse("layout_unreadable", `The partition table of ${device.name} cannot be read by sfdisk.`);
  const listed = partitionsIn(end.stdout);
  if (listed === null) return refuse("layout_unsupported", `${device.name} has no partition table of GPT or DOS.`);
  const other = listed.find((number) => parts.every(({ partition }) => partition !== number));
  return other === undefined
    ? end.stdout
    : refuse(
        "layout_unsupported",
        `The partition ${other} of ${device.name} is not mounted, so its content is unknown. Remove the partition.`,
      );
}

async function readPart(
  root: string,
  device: BlockDevice,
  picture: DiskPicture,
  mount: DiskMount,
  all: readonly Mount[],
  attempt: AttemptTool,
): Promise<DiskPart | LayoutRefusal> {
  const { name, path } = mount;
  const own = picture.devices.find((one) => one.name === name);
  if (own === undefined) return refuse("layout_unreadable", `${name} has disappeared.`);
  const covering = all.filter((one) => one.path === path || one.path.startsWith(`${path}/`));
  const other = covering.find((one) => one.device !== own.number);
  if (other !== undefined || covering.length !== 1)
    return refuse("layout_unsupported", `At or below ${path} something else is mounted (${other?.path ?? path}).`);
  const number = name === device.name ? null : Number(/(\d+)$/.exec(name)?.[1]);
  const probe = await probeDevice(name, attempt);
  if (probe === null) return refuse("layout_unreadable", `blkid cannot read the file system of ${name}.`);
  const fault = typeFault(probe);
  if (fault !== null) return refuse("layout_unsupported", fault);
  const line = lineOf(root, path, probe, own.number);
  if (isRefusal(line)) return line;
  const folder = rootFolder(root, path);
  if (folder === null) return refuse("layout_unreadable", `The folder ${path} cannot be opened.`);
  return {
    partition: number,
    path,
    type: FILE_SYSTEMS.find((one) => one === probe.get("TYPE")) ?? "ext4",
    label: probe.get("LABEL") ?? null,
    uuid: probe.get("UUID") ?? "",
    mounted_by: line.by,
    options: line.options,
    ...folder,
  };
}

/** Owner and mode of a mounted file system's root folder, or null if the folder cannot be opened. */
function rootFolder(root: string, path: string): { uid: number; gid: number; mode: number } | null {
  try {
    const { fd } = openFolderBelow(root, path);
    try {
      const { uid, gid, mode } = fstatSync(fd);
      return { uid, gid, mode: mode & 0o7777 };
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    codeOf(error);
    return null;
  }
}

/** The line of fstab, or the mount unit, that mounts a file system at its place again. */
function lineOf(
  root: string,
  path: string,
  probe: Probe,
  number: string,
): (MountLine & { readonly by: string }) | LayoutRefusal {
  const found = findLine(root, path);
  if (isRefusal(found)) return found;
  const fault = lineFault(
    found,
    found.by,
    probe,
    isNamedBy(found.source, probe) === null && isDevice(root, found.source, number),
  );
  if (fault !== null) return refuse("mount_not_listed", fault);
  return found.isOptional
    ? found
    : refuse(
        "boot_needs_mount",
        `The host would not boot without ${path} if it restarts during the purge. Add the option nofail to ${found.by}.`,
      );
}

function findLine(
  root: string,
  path: string,
): (MountLine & { readonly by: string; readonly isOptional: boolean }) | LayoutRefusal {
  const [line, more] = parseFstab(textOf(root, FSTAB.slice(1)) ?? "").filter((one) => one.path === path);
  if (more !== undefined) return refuse("mount_not_listed", `${FSTAB} names ${path} twice.`);
  if (line !== undefined) return { ...line, by: FSTAB, isOptional: isOptionalAtBoot(line) };
  const unit = mountUnitOf(path);
  const text = UNIT_FOLDERS.map((folder) => textOf(root, `${folder}/${unit}`)).find((one) => one !== null);
  if (text === undefined || text === null || !isSystemdAt(root))
    return refuse(
      "mount_not_listed",
      `Neither ${FSTAB} nor a mount unit mounts ${path} again. Add a line to ${FSTAB}.`,
    );
  const isRequired = existsSync(join(root, "etc/systemd/system/local-fs.target.requires", unit));
  return { ...parseMountUnit(text), by: unit, isOptional: !isRequired };
}

function isDevice(root: string, source: string, number: string): boolean {
  const stat = statSync(join(root, source), { throwIfNoEntry: false });
  return stat?.isBlockDevice() === true && deviceNumber(stat) === number;
}

function textOf(root: string, file: string): string | null {
  try {
    return readFileSync(join(root, file), "utf8");
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}
