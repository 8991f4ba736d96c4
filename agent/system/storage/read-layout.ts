import { closeSync, fstatSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  type DiskLayout,
  type DiskPart,
  FILE_SYSTEMS,
  makeCommand,
  partitionsIn,
  typeFault,
} from "../../storage/disk-layout.ts";
import type { BlockDevice, DiskMount, DiskPicture } from "../../storage/disk-rules.ts";
import type { AttemptTool } from "../attempt.ts";
import { type Mount, parseMounts } from "../mounts.ts";
import { toolPath } from "./attributes.ts";
import { codeOf, openFolderBelow } from "./descriptors.ts";
import { isRefusal, type LayoutRefusal, lineOf, refuse } from "./mount-line.ts";
import { probeDevice } from "./probe-device.ts";
import { twinRefusal } from "./twin-file-system.ts";

export type LayoutRead = { readonly ok: true; readonly layout: DiskLayout } | LayoutRefusal;

const ASK_TIMEOUT_MS = 60_000;

/**
 * Before the purge of a mounted disk, the agent reads the partition table and the file systems that it must make again after the purge. `readLayout`
 * refuses a disk with a file system that the agent cannot make again, or that nothing would mount again.
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
    ) ??
    (await twinRefusal(root, device.name, parts, picture, attempt)) ?? { ok: true, layout: { table, parts } }
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
  const probe = await probeDevice(`/dev/${name}`, attempt);
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

/** Returns the owner and mode of a mounted file system's root folder, or null if the agent cannot open the folder. */
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
