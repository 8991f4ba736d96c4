import type { AttemptTool } from "../system/attempt.ts";
import { ataDrive } from "./ata-drive.ts";
import { type BlockDevice, controllersOf, type DiskPicture } from "./disk-rules.ts";
import { type Drive, nvmeDrive } from "./drive.ts";

/** Returns null for a disk on a bus for which the agent has no commands. */
export function driveOf(device: BlockDevice, picture: DiskPicture, attempt: AttemptTool): Drive | null {
  if (device.bus === "ata") return ataDrive(device, attempt);
  const own = controllersOf(picture.controllers, device);
  return device.bus === "nvme" && own.length > 0 ? nvmeDrive(device, own, attempt) : null;
}
