import { type DiskPart, type Probe, partitionName, sharedTag } from "../../storage/disk-layout.ts";
import type { DiskPicture } from "../../storage/disk-rules.ts";
import type { AttemptTool } from "../attempt.ts";
import { findLine, isRefusal, type LayoutRefusal, refuse } from "./mount-line.ts";
import { probeDevice } from "./probe-device.ts";

/** No mount can take a file system of a device that does not answer, so the agent does not wait long for such a device. */
const LOOK_TIMEOUT_MS = 10_000;

/**
 * Refuses a disk if another device of the host has the UUID, or the tag in /etc/fstab, of one of the disk's file systems. If two devices have the
 * same UUID or tag, a mount after the purge could take the wrong device, and nobody could say which data the tenants would see. The check after the
 * mount (`mount_differs`) would find a wrong device only when the purge had already destroyed the disk's data.
 */
export async function twinRefusal(
  root: string,
  disk: string,
  parts: readonly DiskPart[],
  picture: DiskPicture,
  attempt: AttemptTool,
): Promise<LayoutRefusal | null> {
  const named: { readonly part: DiskPart; readonly source: string; readonly name: string }[] = [];
  for (const part of parts) {
    const line = findLine(root, part.path);
    if (isRefusal(line)) return line;
    named.push({ part, source: line.source, name: partitionName(disk, part.partition) });
  }
  for (const { name: other } of picture.devices.filter(({ isPath, bytes }) => !isPath && bytes > 0)) {
    const probe = await probeDevice(`/dev/${other}`, attempt, LOOK_TIMEOUT_MS);
    for (const { part, source, name } of named) {
      const tag = probe === null || other === name ? null : sharedTag(source, part.uuid, probe);
      if (probe !== null && tag !== null)
        return refuse("twin_file_system", twinText({ part, name, tag, source }, other, probe));
    }
  }
  return null;
}

function twinText(
  {
    part,
    name,
    tag,
    source,
  }: { readonly part: DiskPart; readonly name: string; readonly tag: string; readonly source: string },
  other: string,
  probe: Probe,
): string {
  const next =
    tag === "UUID"
      ? `Give ${other} another UUID (${probe.get("TYPE") === "xfs" ? "xfs_admin -U generate" : "tune2fs -U random"} /dev/${other}), or take it out of the host.`
      : `Name the file system by its UUID in ${part.mounted_by}, or change the ${tag} of ${other}.`;
  return `${other} has the same ${tag} as ${name}, so a mount at ${part.path} (${source}) could take ${other} after the purge. ${next}`;
}
