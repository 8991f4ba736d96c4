import { z } from "zod";
import { plainPath } from "../system/mounts.ts";

/** The types of file systems that the agent can make anew after a purge of their disk. */
export const FILE_SYSTEMS = ["ext4", "xfs"] as const;

/** For each file system of a data disk, the agent stores what it needs to make and mount the file system again. */
export const DiskPart = z.strictObject({
  /** The number of the partition that contains the file system; null if the file system uses the whole disk. */
  partition: z.int().min(1).max(128).nullable(),
  /** The folder at which the file system is mounted. */
  path: z.string().startsWith("/"),
  type: z.enum(FILE_SYSTEMS),
  label: z.string().nullable(),
  uuid: z.string(),
  /** What mounts the file system: /etc/fstab, or the systemd mount unit of this name. */
  mounted_by: z.string(),
  /** The mount options in the line of /etc/fstab or in the mount unit. */
  options: z.string(),
  /** The owner (`uid`, `gid`) and the mode of the file system's root folder. */
  uid: z.int().min(0),
  gid: z.int().min(0),
  mode: z.int().min(0).max(0o7777),
});
export type DiskPart = z.output<typeof DiskPart>;

/** A data disk's partition table is stored as `sfdisk` prints it, or is null if one file system uses the whole disk. */
export const DiskLayout = z.strictObject({
  table: z.string().max(32_000).nullable(),
  parts: z.array(DiskPart).min(1).max(16),
});
export type DiskLayout = z.output<typeof DiskLayout>;

export const FSTAB = "/etc/fstab";

/** A line of /etc/fstab, and a systemd mount unit, both say what is mounted where. */
export interface MountLine {
  readonly source: string;
  readonly path: string;
  readonly type: string;
  readonly options: string;
}

export const parseFstab = (text: string): MountLine[] =>
  text.split("\n").flatMap((line) => {
    const [source = "", path = "", type = "", options = "defaults"] = line.trim().split(/\s+/);
    return source === "" || source.startsWith("#")
      ? []
      : [{ source: plainPath(source), path: plainPath(path), type, options }];
  });

/** Reads the settings `What`, `Where`, `Type` and `Options` of a systemd mount unit. */
export function parseMountUnit(text: string): MountLine {
  const last = (key: string): string =>
    [...text.matchAll(new RegExp(`^${key}=(.*)$`, "gm"))].map(([, value = ""]) => value.trim()).at(-1) ?? "";
  return {
    source: last("What"),
    path: last("Where"),
    type: last("Type") || "auto",
    options: last("Options") || "defaults",
  };
}

/** The systemd mount unit of `/mnt/data-1` has the name `mnt-data\x2d1.mount` (systemd.unit(5)). */
export const mountUnitOf = (path: string): string =>
  `${path
    .slice(1)
    .split("/")
    .map((part) =>
      part.replace(/^[.]|[^A-Za-z0-9:_.]/g, (one) => `\\x${one.charCodeAt(0).toString(16).padStart(2, "0")}`),
    )
    .join("-")}.mount`;

/** The tool `blkid` describes the content of a device by names such as TYPE, UUID and LABEL. */
export type Probe = ReadonlyMap<string, string>;
export const parseProbe = (text: string): Probe =>
  new Map(
    text.split("\n").flatMap((line): [string, string][] => {
      const [, key, value] = /^([A-Z_0-9]+)=(.*)$/.exec(line) ?? [];
      return key === undefined || value === undefined ? [] : [[key, value.replace(/\\(.)/g, "$1")]];
    }),
  );

/** The tags by which a line of /etc/fstab names a file system, with the words of `blkid` for them. */
const TAGS = { UUID: "UUID", LABEL: "LABEL", PARTUUID: "PART_ENTRY_UUID", PARTLABEL: "PART_ENTRY_NAME" } as const;

/**
 * Says whether the source in a line of /etc/fstab or in a mount unit names the device that `probe` (the output of `blkid`) describes. Returns null if
 * the source in the line or mount unit is the path of a device file.
 */
export function isNamedBy(source: string, probe: Probe): boolean | null {
  const [, tag = "", value = ""] = /^([A-Z]+)=(.*)$/.exec(source) ?? [];
  const wanted = value.replace(/^"(.*)"$/, "$1");
  for (const [name, key] of Object.entries(TAGS))
    if (tag === name) return probe.get(key)?.toLowerCase() === wanted.toLowerCase();
  return source.startsWith("/dev/") ? null : false;
}

/**
 * Returns the tag, for example UUID or LABEL, by which a line of /etc/fstab could mount another device in place of the file system `uuid`, or null if
 * there is none. `other` is the output of `blkid` about another device, whose tags `sharedTag` compares. Two file systems with one UUID are always a
 * fault: the kernel refuses to mount both if they are XFS, and tools confuse them.
 */
export function sharedTag(source: string, uuid: string, other: Probe): keyof typeof TAGS | null {
  if (other.get("UUID")?.toLowerCase() === uuid.toLowerCase()) return "UUID";
  const [, tag = "", quoted = ""] =
    /^([A-Z]+)=(.*)$/.exec(source) ?? /^\/dev\/disk\/by-([a-z]+)\/(.*)$/.exec(source) ?? [];
  const value = quoted
    .replace(/^"(.*)"$/, "$1")
    .replace(/\\x([0-9a-f]{2})/g, (_all, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)));
  const names = Object.keys(TAGS) as (keyof typeof TAGS)[];
  const isShared = (name: keyof typeof TAGS): boolean =>
    tag.toUpperCase() === name && other.get(TAGS[name])?.toLowerCase() === value.toLowerCase();
  return names.find(isShared) ?? null;
}

/**
 * The numbers of the partitions in what `sfdisk --dump` printed, or null for another text or another table than GPT and DOS. For a device that the
 * agent holds open, `sfdisk` prints the path of the descriptor in place of the device's name.
 */
export function partitionsIn(dump: string): number[] | null {
  if (!/^label: (gpt|dos)$/m.test(dump)) return null;
  return [...dump.matchAll(/^\/\S*?(\d+) : .*$/gm)].map(([, number]) => Number(number));
}

/** Linux calls a partition for example `nvme0n1p2` or `sda2`. */
export const partitionName = (disk: string, partition: number | null): string =>
  partition === null ? disk : `${disk}${/\d$/.test(disk) ? "p" : ""}${partition}`;

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const LABEL = /^[\w.+:@-]{1,16}$/;

/** Returns why the agent could not make a disk's file system anew after a purge, or null if it could. */
export function typeFault(probe: Probe): string | null {
  const [type, uuid, label] = [probe.get("TYPE") ?? "none", probe.get("UUID") ?? "", probe.get("LABEL")];
  if (!FILE_SYSTEMS.some((one) => one === type))
    return `The agent makes the file systems ${FILE_SYSTEMS.join(" and ")}, and the disk has ${type}.`;
  if (!UUID.test(uuid)) return "The file system has no UUID that the agent could keep.";
  if (label !== undefined && !LABEL.test(label)) return "The label of the file system has unusual characters.";
  return null;
}

/** Returns why a line of /etc/fstab or a mount unit would not mount the file system again after a purge, or null if it would. */
export function lineFault(line: MountLine, where: string, probe: Probe, isDevice: boolean): string | null {
  if (!(isNamedBy(line.source, probe) ?? isDevice)) return `${where} names another device (${line.source}).`;
  if (line.type !== "auto" && line.type !== probe.get("TYPE"))
    return `${where} names the type ${line.type}, and the disk has ${probe.get("TYPE")}.`;
  return null;
}

/**
 * True if the host's boot continues although it cannot mount the file system. If the mount were mandatory, a host that restarts between the purge and
 * the making of the new file system would stop in systemd's emergency shell.
 */
export const isOptionalAtBoot = ({ options }: Pick<MountLine, "options">): boolean =>
  options.split(",").some((one) => one === "nofail" || one === "noauto");

export interface ToolCall {
  readonly tool: string;
  readonly args: readonly string[];
}

/** The new file system gets the type, label and UUID of the purged one. The tools of mkfs refuse a device in use unless they are forced. */
export function makeCommand({ type, label, uuid }: DiskPart, device: string): ToolCall {
  const labelled = label === null ? [] : ["-L", label];
  // With its option -f, mkfs.xfs replaces an existing file system, for example a half-made one, but refuses a file system that is in use.
  return type === "ext4"
    ? { tool: "mkfs.ext4", args: ["-q", ...labelled, "-U", uuid, device] }
    : { tool: "mkfs.xfs", args: ["-q", "-f", ...labelled, "-m", `uuid=${uuid}`, device] };
}

const mountCommand = ({ mounted_by, path }: DiskPart): ToolCall =>
  mounted_by === FSTAB ? { tool: "mount", args: ["--", path] } : { tool: "systemctl", args: ["start", mounted_by] };

/** Options in /etc/fstab that are for other programs than `mount`, and may contain the path of the mount point. */
const NOT_FOR_MOUNT = /^(nofail|noauto|auto|defaults|comment=.*|x-.*)$/i;

/**
 * Returns the command that mounts `device` at `place`, the path of an open folder. If its arguments name a device and a mount point, `mount` does not
 * read /etc/fstab, so the command also names the type and the options. Without `--no-canonicalize`, `mount` would replace the path of the open folder
 * by the folder's present name. systemd mounts a mount unit at the unit's own path, so the command `systemctl start` names no mount point.
 */
export function placedMount(part: DiskPart, device: string, place: string): ToolCall {
  if (part.mounted_by !== FSTAB) return mountCommand(part);
  const options = part.options.split(",").filter((one) => one !== "" && !NOT_FOR_MOUNT.test(one));
  const some = options.length === 0 ? [] : ["-o", options.join(",")];
  return { tool: "mount", args: ["--no-canonicalize", "-t", part.type, ...some, "--", device, place] };
}

const lineOf = ({ tool, args }: ToolCall): string => `${tool} ${args.filter((one) => one !== "--").join(" ")}`;

/** The commands by which an operator makes and mounts a file system that the agent could not make again. */
export function repairCommands(part: DiskPart, disk: string, isMade: boolean): string {
  const folder = `chown ${part.uid}:${part.gid} ${part.path} && chmod ${part.mode.toString(8)} ${part.path}`;
  const make = isMade ? "" : `${lineOf(makeCommand(part, `/dev/${partitionName(disk, part.partition)}`))} && `;
  return `${make}${lineOf(mountCommand(part))} && ${folder}`;
}

export const describeParts = (parts: readonly DiskPart[]): string =>
  parts
    .map(({ path, type, label, mounted_by }) => `${path} (${type}, label ${label ?? "none"}, by ${mounted_by})`)
    .join(", ");

/**
 * The mount options that Linux shows for each mount in /proc/self/mountinfo. Linux shows the mount options that are not in `SHOWN`, such as
 * `defaults` and `nofail`, under another name or not at all.
 */
const SHOWN = ["ro", "noatime", "relatime", "nodiratime", "nosuid", "nodev", "noexec"];

/**
 * Returns the options of a line in /etc/fstab that the present mount lacks. `shown` lists the options that /proc/self/mountinfo shows for the mount.
 */
export const missingOptions = (options: string, shown: readonly string[]): string[] =>
  options.split(",").filter((one) => SHOWN.includes(one) && !shown.includes(one));
