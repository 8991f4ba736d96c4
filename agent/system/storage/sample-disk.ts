import type { z } from "zod";
import { disksWithSerial } from "../../storage/disk-rules.ts";
import { blocksOf, sampleOf, unreadReason } from "../../storage/disk-sample.ts";
import type { WorkRun } from "../workers/define-work.ts";
import { readDiskPicture } from "./block-devices.ts";
import { openDirect } from "./direct-disk.ts";
import type { SAMPLE_DISK } from "./works.ts";

type Input = z.output<typeof SAMPLE_DISK.input>;

/**
 * The agent reads randomly chosen blocks of a disk by direct I/O, past the page cache. The worker process opens the disk only for reading, so a
 * mounted disk stays unchanged.
 */
export function sampleDisk(input: Input, run: WorkRun): z.input<typeof SAMPLE_DISK.result> {
  const picture = readDiskPicture(run.root);
  const [device, other] = disksWithSerial(picture, input.serial);
  if (device === undefined || other !== undefined) throw new Error(`The host has no single disk ${input.serial} now.`);
  const why = unreadReason(picture, device, input.data_only);
  if (why !== null) throw new Error(why);
  const disk = openDirect(run.root, device.name, "read");
  try {
    run.progress({ step: `read ${device.name}`, done: 0, bytes: 0 });
    return sampleOf(blocksOf(device), input, (block) => {
      run.throwIfStopped();
      return disk.read(block);
    });
  } finally {
    disk.close();
  }
}
