import { z } from "zod";
import { gpuScrub } from "../../shared/tasks/gpu-scrub.ts";
import type { TaskReply } from "../../shared/tasks/index.ts";
import { defineWork } from "../system/workers/define-work.ts";

const Failures = z.array(z.string());
const Reply = z.custom<TaskReply<"node.gpu_scrub">>((value) => typeof value === "object" && value !== null);

export const GPU_SCRUB_WORK = defineWork({
  kind: "gpu.scrub",
  input: z.strictObject({ task_id: z.string(), order: gpuScrub.input }),
  result: z.strictObject({ reply: Reply }),
  memoryMax: "512M",
  mayBlock: true,
});

/** The kind of worker process that restores the services and kernel modules that a lost or cancelled GPU cleaning stopped. */
export const GPU_GIVE_BACK_WORK = defineWork({
  kind: "gpu.give_back",
  input: z.strictObject({}),
  result: z.strictObject({ failures: Failures }),
  memoryMax: "512M",
  mayBlock: true,
});
