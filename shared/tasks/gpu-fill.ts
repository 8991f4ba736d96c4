import { z } from "zod";
import { GPU_FAULT_CODES } from "../gpu-faults.ts";
import { GpuCommitment, GpuUuid, MOST_GPU_BYTES, MOST_GPUS, PciAddress } from "../gpu-memory.ts";
import { cleaningStepsNamed } from "./cleaning-step.ts";
import { defineTask } from "./define-task.ts";

const GPU_FILL_STEPS = ["gpu_fill"] as const;

/**
 * Overwrites the memory of the host's GPUs and holds it (decision C2). A worker for each GPU takes all memory, reads the memory, fills it with a
 * stream that the hub's seed determines, and compares. The result is what each worker commits to. The workers hold the memory until
 * `node.gpu_challenge` asks about it, or until `hold_seconds` have passed. Then the workers zero and free the memory.
 *
 * The seed is no secret: the hub makes a seed for one task, the seed protects nothing, and the host must know the seed. The seed stays in the task's
 * row, so that an auditor can compute the stream again. A repetition with the same seed could find the bytes of the first run, so every error of the
 * task is final, and the hub repeats the work as another task with another seed.
 */
export const gpuFill = defineTask({
  type: "node.gpu_fill",
  lane: "work",
  leaseSeconds: 300,
  destructive: true,
  worksOutside: true,
  input: z.strictObject({
    plan: z.boolean(),
    /** 32 random bytes of the hub, for this task only. */
    seed: z.string().regex(/^[0-9a-f]{64}$/),
    /**
     * A random word of the hub. Before the overwrite, another worker writes the word into all memory and ends. The worker of the overwrite then
     * counts how often the driver gives this word back. The count shows whether the driver clears freed memory. Null leaves this pass out.
     */
    marker: z.int().min(1).max(0xffff_ffff).nullable(),
    /** The GPUs of the host by the inventory. The number of a GPU in this list is part of its stream. */
    gpus: z
      .array(
        z.discriminatedUnion("vendor", [
          z.strictObject({ vendor: z.literal("nvidia"), uuid: GpuUuid, pci_address: PciAddress }),
          z.strictObject({ vendor: z.literal("amd"), pci_address: PciAddress }),
        ]),
      )
      .min(1)
      .max(MOST_GPUS),
    /** How long a worker may need for the memory of its GPU, until it commits. */
    deadline_seconds: z.int().min(10).max(3_600),
    hold_seconds: z.int().min(10).max(3_600),
  }),
  result: z.strictObject({
    steps: cleaningStepsNamed(GPU_FILL_STEPS),
    commitments: z.array(GpuCommitment).max(MOST_GPUS),
    faults: z.array(z.strictObject({ target: z.string().max(64), fault: z.enum(GPU_FAULT_CODES) })).max(MOST_GPUS),
    /** What the host says about its NVIDIA driver. Null if the driver is not loaded. */
    driver: z
      .strictObject({
        version: z.string().max(256),
        /**
         * Registry settings of the driver, which can turn off the driver's own clearing of memory. Both texts are empty on a host as it was deployed.
         */
        registry: z.string().max(256),
        registry_per_device: z.string().max(256),
      })
      .nullable(),
    /** The Debian package that owns the library of the driver, and whether the library has the bytes of the package. Null means: not known. */
    library: z.strictObject({
      package: z.string().max(128).nullable(),
      is_unchanged: z.boolean().nullable(),
    }),
  }),
  progress: z.strictObject({
    gpus: z
      .array(z.strictObject({ uuid: GpuUuid, step: z.string().max(32), bytes: z.number().min(0).max(MOST_GPU_BYTES) }))
      .max(MOST_GPUS),
  }),
  errors: {
    /** A worker of an earlier task still holds GPU memory, and does not end. The error's message names the process. */
    earlier_worker_remains: "fail",
  },
});
