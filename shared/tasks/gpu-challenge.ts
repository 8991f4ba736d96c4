import { z } from "zod";
import { GPU_FAULT_CODES } from "../gpu-faults.ts";
import { GpuAnswer, GpuRelease, GpuUuid, MOST_GPUS, MOST_SAMPLE_BLOCKS, SampleBlock } from "../gpu-memory.ts";
import { cleaningStepsNamed } from "./cleaning-step.ts";
import { defineTask } from "./define-task.ts";

const GPU_CHALLENGE_STEPS = ["gpu_challenge"] as const;

/**
 * Asks the workers of a task `node.gpu_fill` about blocks of GPU memory that the hub chose at random after the workers' commitments. A worker answers
 * with an HMAC over the bytes of each block of GPU memory that the challenge names. After its answers, a worker zeroes the GPU's memory, checks that
 * the memory is zero, and frees the memory. A worker of the GPU memory overwrite answers only one challenge. A second delivery of a challenge returns
 * the answers of the first delivery.
 */
export const gpuChallenge = defineTask({
  type: "node.gpu_challenge",
  lane: "work",
  leaseSeconds: 300,
  destructive: false,
  input: z.strictObject({
    plan: z.boolean(),
    fill_task_id: z.uuid(),
    /** 16 random bytes of the hub, which are the key of the HMAC in each answer to the challenge. */
    nonce: z.string().regex(/^[0-9a-f]{32}$/),
    gpus: z
      .array(z.strictObject({ uuid: GpuUuid, blocks: z.array(SampleBlock).min(1).max(MOST_SAMPLE_BLOCKS) }))
      .min(1)
      .max(MOST_GPUS),
    /** How long a worker may need to answer the challenge, and to zero and free the GPU's memory. */
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
