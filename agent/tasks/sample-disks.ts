import { createHash } from "node:crypto";
import type { TaskHandlers, TaskInput, TaskRun } from "../../shared/tasks/index.ts";
import { MOST_SAMPLED_DISKS, type SampledDisk } from "../../shared/tasks/sample-disks.ts";
import { messageOf } from "../message-of.ts";
import type { BlockDevice } from "../storage/disk-rules.ts";
import { blocksOf, holdsSystem, isOwnDisk, unreadReason } from "../storage/disk-sample.ts";
import { SAMPLE_DISK } from "../system/storage/works.ts";
import type { System } from "../system/system.ts";
import { isCancelledByHub } from "./cancelled.ts";

const TYPE = "node.sample_disks";
/**
 * The reads of one disk's random blocks take seconds. If the reads of a disk's random blocks take longer than `READ_WITHIN_S`, the disk is broken,
 * and the agent continues with the next disk.
 */
const READ_WITHIN_S = 120;

/**
 * The agent reads random blocks of each disk in a worker process outside the agent's own process. If the agent cannot read one disk, it still reads
 * the other disks.
 */
export const sampleDisks =
  (system: System): TaskHandlers[typeof TYPE] =>
  async (order, run) => {
    try {
      system.workers.begin(run.taskId, order);
    } catch (error) {
      const message = `The agent could not write its state folder: ${messageOf(error)}. No disk was read.`;
      return { ok: false, error: "not_recorded", message };
    }
    const found = system.disks().devices.filter(isOwnDisk);
    const disks: SampledDisk[] = [];
    for (const device of found.slice(0, MOST_SAMPLED_DISKS)) disks.push(await sampledDisk(system, device, order, run));
    const more = found.length - disks.length;
    return { ok: true, result: { boot_id: await system.bootId(), disks, more } };
  };

async function sampledDisk(
  system: System,
  device: BlockDevice,
  order: TaskInput<typeof TYPE>,
  run: TaskRun<typeof TYPE>,
): Promise<SampledDisk> {
  const { serial, model, wwn, bytes } = device;
  const picture = system.disks();
  const named = {
    serial: serial?.slice(0, 64) ?? null,
    model: model.slice(0, 64),
    wwn: wwn?.slice(0, 128) ?? null,
    bytes,
    holds_system: holdsSystem(picture, device),
  };
  const unread = (detail: string): SampledDisk => ({ ...named, sample: null, detail: detail.slice(0, 200) });
  const why = unreadReason(picture, device, order.data_only);
  if (why !== null || serial === null) return unread(why ?? "The disk has no serial number.");
  if (blocksOf(device) === 0) return unread("The disk has no size.");
  try {
    const end = await system.workers.perform({
      taskId: run.taskId,
      part: `sample-${createHash("sha256").update(serial).digest("hex").slice(0, 24)}`,
      work: SAMPLE_DISK,
      input: {
        serial,
        seed: order.seed,
        key: order.key,
        data_only: order.data_only,
        again: order.again.find((one) => one.serial === serial)?.blocks ?? [],
      },
      deadlineSeconds: READ_WITHIN_S,
      signal: run.signal,
      endsWith: isCancelledByHub,
      progress: run.progress,
    });
    return end.ok ? { ...named, sample: end.result, detail: "" } : unread(`${end.code}: ${end.message}`);
  } catch (error) {
    if (run.signal.aborted) throw error;
    return unread(messageOf(error));
  }
}
