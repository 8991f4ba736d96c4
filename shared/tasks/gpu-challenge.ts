import { z } from "zod";
import { GPU_FAULT_CODES } from "../gpu-faults.ts";
import { GpuAnswer, GpuRelease, GpuUuid, MOST_GPUS, MOST_SAMPLE_BLOCKS, SampleBlock } from "../gpu-memory.ts";
import { cleaningStepsNamed } from "./cleaning-step.ts";
import { defineTask } from "./define-task.ts";

const GPU_CHALLENGE_STEPS = ["gpu_challenge"] as const;

/**
 * Asks the worker processes of a task `node.gpu_fill` for the content of blocks of GPU memory, which the hub chose at random after the workers had
 * reported the filled memory. After a worker has answered the hub's question for blocks of GPU memory, it zeroes the memory, checks that the memory
 * is zero, and frees it. A worker, the process that holds the memory of one GPU, answers the hub's question for blocks of this memory only once. If
 * the agent gets a task `node.gpu_challenge` a second time, it returns the answers of the first time.
 */
export const gpuChallenge = defineTask({
  type: "node.gpu_challenge",
  changes: "host",
  leaseSeconds: 300,
  destructive: false,
  input: z.strictObject({
    plan: z.boolean(),
    fill_task_id: z.uuid(),
    /** 16 random bytes of the hub: the key of the HMAC with which a worker answers the question for blocks of GPU memory. */
    nonce: z.string().regex(/^[0-9a-f]{32}$/),
    gpus: z
      .array(z.strictObject({ uuid: GpuUuid, blocks: z.array(SampleBlock).min(1).max(MOST_SAMPLE_BLOCKS) }))
      .min(1)
      .max(MOST_GPUS),
    deadline_seconds: z.int().min(10).max(3_600),
  }),
  result: z.strictObject({
    steps: cleaningStepsNamed(GPU_CHALLENGE_STEPS),
    gpus: z
      .array(
        z.strictObject({
          uuid: GpuUuid,
          answers: z.array(GpuAnswer).max(MOST_SAMPLE_BLOCKS),
          release: GpuRelease.nullable(),
          fault: z.enum(GPU_FAULT_CODES).nullable(),
        }),
      )
      .max(MOST_GPUS),
  }),
  progress: z.strictObject({ answered: z.int().min(0).max(MOST_GPUS), released: z.int().min(0).max(MOST_GPUS) }),
  errors: {},
});
