import { z } from "zod";
import { GPU_FAULT_CODES } from "../gpu-faults.ts";
import {
  AmdUuid,
  GpuClear,
  GpuCommitment,
  GpuUuid,
  MOST_GPU_BYTES,
  MOST_GPUS,
  NvidiaUuid,
  PciAddress,
} from "../gpu-memory.ts";
import { cleaningStepsNamed } from "./cleaning-step.ts";
import { defineTask } from "./define-task.ts";

const GPU_FILL_STEPS = ["gpu_fill"] as const;

/**
 * Overwrites the memory of the host's GPUs, and keeps the memory allocated until the hub has asked for random blocks of it (decision C2). For each
 * GPU, a worker process allocates all memory and fills it with a stream of bytes from the hub's seed. After the fill, the worker process compares the
 * GPU's memory with the stream of bytes that it wrote. The task's result contains each worker's commitment: what the worker allocated, found and
 * compared. The workers hold the GPU memory until the task `node.gpu_challenge` asks about it, or until `hold_seconds` have passed.
 *
 * The seed of a `node.gpu_fill` is no secret, because it protects nothing and the host must know it. The database row of a task `node.gpu_fill` keeps
 * the seed, so that an auditor can compute the bytes that were written to the GPUs. A second fill with the same seed could find the bytes of the
 * first fill in the GPU's memory, so every error of the task `node.gpu_fill` is final. After a failed overwrite of GPU memory, the hub queues another
 * task with another seed.
 */
export const gpuFill = defineTask({
  type: "node.gpu_fill",
  changes: "host",
  leaseSeconds: 300,
  destructive: true,
  input: z.strictObject({
    plan: z.boolean(),
    /** The seed of the stream of bytes: 32 random bytes that the hub makes for one task only. */
    seed: z.string().regex(/^[0-9a-f]{64}$/),
    /**
     * `marker` is a random number from the hub, by which the agent tests whether the driver clears freed GPU memory. To test whether the driver
     * clears freed GPU memory, a first worker process fills all GPU memory with the number `marker` and ends. A second worker process counts how
     * often the memory from the driver still contains the number `marker`, before it overwrites the memory. If `marker` is null, the agent does not
     * test whether the driver clears freed GPU memory.
     */
    marker: z.int().min(1).max(0xffff_ffff).nullable(),
    /**
     * The task's order lists the GPUs as the host's inventory does. The position of a GPU in the list `gpus` is a part of the ChaCha20 nonces with
     * which the GPU's memory is filled.
     */
    gpus: z
      .array(
        z.discriminatedUnion("vendor", [
          z.strictObject({ vendor: z.literal("nvidia"), uuid: NvidiaUuid, pci_address: PciAddress }),
          z.strictObject({ vendor: z.literal("amd"), uuid: AmdUuid, pci_address: PciAddress }),
        ]),
      )
      .min(1)
      .max(MOST_GPUS),
    /** How long a worker may take to overwrite its GPU's memory and send its commitment. */
    deadline_seconds: z.int().min(10).max(3_600),
    hold_seconds: z.int().min(10).max(3_600),
  }),
  result: z.strictObject({
    steps: cleaningStepsNamed(GPU_FILL_STEPS),
    commitments: z.array(GpuCommitment).max(MOST_GPUS),
    /**
     * The AMD GPUs whose memory the kernel's amdgpu driver cleared, because the host has no HIP. Of a GPU that the driver cleared, no worker process
     * holds memory, so the hub does not ask for blocks of this memory. `clears` is absent if the worker processes overwrote the memory of all GPUs,
     * so that the driver cleared none for them.
     */
    clears: z.array(GpuClear).min(1).max(MOST_GPUS).optional(),
    faults: z.array(z.strictObject({ target: z.string().max(64), fault: z.enum(GPU_FAULT_CODES) })).max(MOST_GPUS),
    /** `driver` is null if the driver of the host's GPUs is not loaded. */
    driver: z
      .strictObject({
        version: z.string().max(256),
        /**
         * Registry settings of the NVIDIA driver, which can turn off the driver's own clearing of GPU memory. `registry` and `registry_per_device`,
         * the NVIDIA driver's registry settings, are empty on a newly deployed host. On a host with AMD GPUs, `registry` and `registry_per_device`
         * are empty, because the amdgpu driver has no registry settings.
         */
        registry: z.string().max(256),
        registry_per_device: z.string().max(256),
      })
      .nullable(),
    /**
     * Which Debian package owns the GPU driver's library, and whether the library file still has the bytes of the package. A field about the GPU
     * driver's library is null if the agent does not know its value.
     */
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
    /** A worker of an earlier task `node.gpu_fill` still holds GPU memory, and does not end. */
    earlier_worker_remains: "fail",
  },
});
