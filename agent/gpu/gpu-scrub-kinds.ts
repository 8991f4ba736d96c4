import { z } from "zod";
import { gpuScrub } from "../../shared/tasks/gpu-scrub.ts";
import type { TaskReply } from "../../shared/tasks/index.ts";
import { defineWork } from "../system/workers/define-work.ts";

const Failures = z.array(z.string());
const Reply = z.custom<TaskReply<"node.gpu_scrub">>((value) => typeof value === "object" && value !== null);

/** The cleaning of GPUs, which may hang in the driver. */
export const GPU_SCRUB_WORK = defineWork({
  kind: "gpu.scrub",
  input: z.strictObject({ task_id: z.string(), order: gpuScrub.input }),
  result: z.strictObject({ reply: Reply }),
  memoryMax: "512M",
  mayBlock: true,
});

/** Gives back what a lost or cancelled cleaning of GPUs had taken away. The result has the reasons for what could not be given back. */
export const GPU_GIVE_BACK_WORK = defineWork({
  kind: "gpu.give_back",
  input: z.strictObject({}),
  result: z.strictObject({ failures: Failures }),
  memoryMax: "512M",
  mayBlock: true,
});
