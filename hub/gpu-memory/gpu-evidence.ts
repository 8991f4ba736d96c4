import { AmdUuid, NvidiaUuid, PciAddress } from "../../shared/gpu-memory.ts";
import { type HostGpuSizes, knownGpuBytes } from "../../shared/gpu-sizes.ts";
import type { TaskId } from "../../shared/ids.ts";
import type { TaskInput, TaskResult } from "../../shared/tasks/index.ts";
import { drawBlocks } from "./draw-blocks.ts";
import type { AnswersToCheck, CheckedAnswers } from "./expected-answers.ts";
import { type DriverLibrary, type GpuEvidence, LEAST_QUESTIONS, statedBytes } from "./verdict.ts";

/** The input and the result of a finished task `node.gpu_fill`, from the task's row in the database. */
export interface Filled {
  readonly taskId: TaskId;
  readonly input: TaskInput<"node.gpu_fill">;
  readonly result: TaskResult<"node.gpu_fill">;
}
export interface Challenged {
  readonly input: TaskInput<"node.gpu_challenge">;
  readonly result: TaskResult<"node.gpu_challenge">;
}
/** A GPU that the reset named, and whether the reset of this GPU succeeded. */
export interface ExpectedGpu {
  readonly uuid: string;
  readonly address: string;
  /** The size of the GPU's memory in bytes, as the host reported it with the GPU reset; null without such a report. */
  readonly bytes: number | null;
  readonly isReset: boolean;
}

/**
 * Returns the GPUs that a host's GPU reset reported. A fill task orders the host to overwrite the memory of the GPUs that the host's GPU reset
 * reported, and the hub expects evidence of each of these GPUs. Muster cannot overwrite a GPU whose UUID the reset did not report, and lists such a
 * GPU in `unnamed`.
 */
export function gpusOfScrub({ steps }: TaskResult<"node.gpu_scrub">): {
  readonly order: TaskInput<"node.gpu_fill">["gpus"];
  readonly expected: ExpectedGpu[];
  readonly unnamed: string[];
} {
  const order: TaskInput<"node.gpu_fill">["gpus"] = [];
  const expected: ExpectedGpu[] = [];
  const unnamed: string[] = [];
  for (const { step, target, outcome, evidence } of steps) {
    if (step !== "gpu_verify") continue;
    const gpu = orderOf(evidence["uuid"], target);
    if (gpu === null) {
      unnamed.push(target);
      continue;
    }
    const mib = evidence["memory_total_mib"];
    order.push(gpu);
    expected.push({
      uuid: gpu.uuid,
      address: gpu.pci_address,
      bytes: typeof mib === "number" ? mib * 2 ** 20 : null,
      isReset: outcome === "ok",
    });
  }
  return { order, expected, unnamed };
}

/**
 * Returns the description of one GPU for the input of a fill task, the task that overwrites GPU memory; the form of the UUID tells the GPU's vendor.
 * `orderOf` returns null if the host's GPU reset reported no valid UUID or no valid PCI address for the GPU.
 */
function orderOf(uuid: unknown, target: string): TaskInput<"node.gpu_fill">["gpus"][number] | null {
  const address = PciAddress.safeParse(target);
  if (!address.success) return null;
  const nvidia = NvidiaUuid.safeParse(uuid);
  if (nvidia.success) return { vendor: "nvidia", uuid: nvidia.data, pci_address: address.data };
  const amd = AmdUuid.safeParse(uuid);
  return amd.success ? { vendor: "amd", uuid: amd.data, pci_address: address.data } : null;
}

/**
 * Makes the input of the task by which the hub asks a host for random blocks of overwritten GPU memory. `challengeOf` asks for blocks of each GPU
 * whose memory the fill task has overwritten without a mismatch, and returns null if there is no such GPU. `below(n)` returns a random integer from 0
 * to n - 1, and `nonce` is 16 random bytes in hex.
 */
export function challengeOf(
  { taskId, result }: Filled,
  nonce: string,
  below: (limit: number) => number,
  deadlineSeconds: number,
): TaskInput<"node.gpu_challenge"> | null {
  const gpus = result.commitments
    .filter(({ mismatched_blocks, allocated_bytes }) => mismatched_blocks === 0 && allocated_bytes > 0)
    .map(({ uuid, allocated_bytes }) => ({ uuid, blocks: drawBlocks(allocated_bytes, LEAST_QUESTIONS, below) }));
  return gpus.length === 0
    ? null
    : { plan: false, fill_task_id: taskId, nonce, gpus, deadline_seconds: deadlineSeconds };
}

/**
 * Returns the memory blocks that a challenge asked for and the host's answers, which the hub checks by its own computation. The hub takes each GPU's
 * index from the list of GPUs in the fill task's input, because the host must not choose this index.
 */
export const answersToCheck = (filled: Filled, challenged: Challenged): AnswersToCheck => ({
  fill_task_id: filled.taskId,
  seed: filled.input.seed,
  nonce: challenged.input.nonce,
  gpus: challenged.input.gpus.flatMap(({ uuid, blocks }) => {
    const gpu = filled.input.gpus.findIndex((one) => one.uuid === uuid);
    const answers = challenged.result.gpus.find((one) => one.uuid === uuid)?.answers ?? [];
    return gpu < 0 ? [] : [{ gpu, uuid, blocks, answers }];
  }),
});

/**
 * Collects for each expected GPU the evidence of the fill task and of the challenge task. A GPU has no evidence from the fill task or the challenge
 * task if that task did not name the GPU.
 */
export const evidenceOf = (
  expected: readonly ExpectedGpu[],
  filled: Filled | null,
  challenged: Challenged | null,
  checked: readonly CheckedAnswers[],
  sizes: HostGpuSizes,
): GpuEvidence[] =>
  expected.map(({ uuid, address, bytes: reportedBytes, isReset }) => {
    const commitment = filled?.result.commitments.find((one) => one.uuid === uuid) ?? null;
    const wasAsked = challenged?.input.gpus.some((one) => one.uuid === uuid) === true;
    const answered = challenged?.result.gpus.find((one) => one.uuid === uuid) ?? null;
    const answers = wasAsked && answered !== null && answered.answers.length > 0 ? checkedOf(checked, uuid) : null;
    const clear = filled?.result.clears?.find((one) => one.uuid === uuid) ?? null;
    const release = answered?.release ?? null;
    const expectedBytes = knownGpuBytes(sizes, address, statedBytes({ reportedBytes, commitment, clear }));
    const library = libraryOf(filled);
    return { uuid, expectedBytes, reportedBytes, isReset, commitment, answers, release, clear, library };
  });

/**
 * `library.is_unchanged` is null if the agent could not compare the library of the GPU driver with its package, for example because no package owns
 * the library.
 */
function libraryOf(filled: Filled | null): DriverLibrary {
  const isUnchanged = filled?.result.library.is_unchanged ?? null;
  return isUnchanged === null ? "unchecked" : isUnchanged ? "as_packaged" : "changed";
}

const checkedOf = (checked: readonly CheckedAnswers[], uuid: string): CheckedAnswers | null =>
  checked.find((one) => one.uuid === uuid) ?? null;
