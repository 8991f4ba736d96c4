import { z } from "zod";
import { GPU_FAULT_CODES } from "../gpu-faults.ts";
import { GpuAnswer, GpuRelease, GpuUuid, MOST_GPUS, MOST_SAMPLE_BLOCKS, SampleBlock } from "../gpu-memory.ts";
import { cleaningStepsNamed } from "./cleaning-step.ts";
import { defineTask } from "./define-task.ts";

const GPU_CHALLENGE_STEPS = ["gpu_challenge"] as const;

/**
 * Asks the workers of a task `node.gpu_fill` about blocks of GPU memory, which the hub chose at random after the workers' commitments. After a worker
 * has answered the challenge, it zeroes the GPU's memory, checks that the memory is zero, and frees the memory. A worker, the process that holds the
 * memory of one GPU, answers only one challenge. A second delivery of a challenge to the agent returns the answers of the first delivery.
 */
export const gpuChallenge = defineTask({
  type: "node.gpu_challenge",
  changes: "host",
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
