import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import {
  FSTAB,
  isNamedBy,
  isOptionalAtBoot,
  lineFault,
  type MountLine,
  mountUnitOf,
  type Probe,
  parseFstab,
  parseMountUnit,
} from "../../storage/disk-layout.ts";
import { deviceNumber } from "../device-holders.ts";
import { isMissing } from "../files.ts";
import { isSystemdAt } from "../workers/launch.ts";

export interface LayoutRefusal {
  readonly ok: false;
  readonly reason:
    | "layout_unsupported"
    | "layout_unreadable"
    | "mount_not_listed"
    | "boot_needs_mount"
    | "twin_file_system"
    | "tool_missing";
  readonly detail: string;
}
const UNIT_FOLDERS = ["etc/systemd/system", "run/systemd/system", "usr/lib/systemd/system", "lib/systemd/system"];

export const refuse = (reason: LayoutRefusal["reason"], detail: string): LayoutRefusal => ({
  ok: false,
  reason,
  detail,
});
export const isRefusal = (one: object): one is LayoutRefusal => "ok" in one && one.ok === false;

/** Finds the line of /etc/fstab, or the mount unit, that mounts a file system at its mount point again. */
export function lineOf(
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

export function findLine(
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
