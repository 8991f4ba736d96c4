/**
 * What the agent of a host with NVIDIA GPUs reports about the memory of the GPUs. By default, each simulated GPU has `SAMPLE_BLOCK_BYTES` bytes of
 * memory.
 */
import { createHmac } from "node:crypto";
import { sampleBlockBytes } from "../../hub/gpu-memory/expected-answers.ts";
import { answerPrefix, type GpuCommitment, type GpuRelease, SAMPLE_BLOCK_BYTES } from "../../shared/gpu-memory.ts";
import type { TaskInput, TaskResult } from "../../shared/tasks/index.ts";

type Fill = TaskInput<"node.gpu_fill">;
type Challenge = TaskInput<"node.gpu_challenge">;

/** The inputs of `node.gpu_fill` tasks by task id, as long as the simulated agents hold the filled GPU memory. */
const held = new Map<string, { readonly input: Fill; readonly blocks: number }>();

export const memoryUuid = (number: number): string =>
  `GPU-00112233-4455-6677-8899-aabbccddee${number.toString(16).padStart(2, "0")}`;

const commitmentOf = (uuid: string, pciAddress: string, bytes: number): GpuCommitment => ({
  uuid,
  pci_address: pciAddress,
  cuda_version: 13_000,
  hip_version: null,
  allocated_bytes: bytes,
  total_bytes: bytes,
  reserved_bytes: 0,
  visible_bytes: bytes,
  kernels_error: null,
  prefill_nonzero_units: 0,
  prefill_marker_units: null,
  mismatched_blocks: 0,
  first_mismatch: null,
  open_ms: 1,
  allocate_ms: 1,
  scan_ms: 1,
  fill_ms: 1,
  check_ms: 1,
});

/** Simulates that an agent fills `blocks` sample blocks of each GPU in a task `node.gpu_fill`, and keeps the task's input for the challenge. */
export function fillMemory(taskId: string, input: Fill, blocks = 1): TaskResult<"node.gpu_fill"> {
  held.set(taskId, { input, blocks });
  const commitments = input.gpus.map(({ uuid, pci_address }) =>
    commitmentOf(uuid, pci_address, blocks * SAMPLE_BLOCK_BYTES),
  );
  const steps = commitments.map(
    ({ uuid }) => ({ step: "gpu_fill", target: uuid, outcome: "ok", message: "filled", evidence: {} }) as const,
  );
  return { steps, commitments, faults: [], driver: null, library: { package: null, is_unchanged: null } };
}

export function answerChallenge(input: Challenge): TaskResult<"node.gpu_challenge"> {
  const fill = held.get(input.fill_task_id);
  if (fill === undefined) throw new Error(`no simulated agent holds the memory of task ${input.fill_task_id}`);
  const gpus = input.gpus.map(({ uuid, blocks }) => {
    const number = fill.input.gpus.findIndex((gpu) => gpu.uuid === uuid);
    const answers = blocks.map((block) =>
      createHmac("sha256", Buffer.from(input.nonce, "hex"))
        .update(answerPrefix(input.fill_task_id, uuid, block))
        .update(sampleBlockBytes(fill.input.seed, number, block))
        .digest("base64url"),
    );
    const zeroed = fill.blocks * SAMPLE_BLOCK_BYTES;
    const release: GpuRelease = { zeroed_bytes: zeroed, nonzero_units: 0, answer_ms: 1, zero_ms: 1, scan_ms: 1 };
    return { uuid, answers, release, fault: null };
  });
  const steps = gpus.map(
    ({ uuid }) => ({ step: "gpu_challenge", target: uuid, outcome: "ok", message: "answered", evidence: {} }) as const,
  );
  return { steps, gpus };
}
