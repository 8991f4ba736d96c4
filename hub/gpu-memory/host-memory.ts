import type { HostGpuSizes } from "../../shared/gpu-sizes.ts";
import type { RecordGpu } from "../../shared/sanitization-record.ts";
import type { Statement } from "../../shared/sanitization-sentences.ts";
import type { TaskResult } from "../../shared/tasks/index.ts";
import { type ClaimingHost, gpuClaim } from "./claim.ts";
import type { CheckedAnswers } from "./expected-answers.ts";
import { type Challenged, evidenceOf, type Filled, gpusOfScrub } from "./gpu-evidence.ts";
import { type GpuEvidence, type GpuRequirement, type GpuVerdict, gpuVerdict, unmetRequirement } from "./verdict.ts";

/** The facts that the hub knows about a host's GPU memory after the host was cleaned between two tenants. */
export interface HostMemoryFacts {
  readonly scrub: TaskResult<"node.gpu_scrub">;
  readonly filled: Filled | null;
  readonly challenged: Challenged | null;
  /** The results of the hub's check of the host's answers to the challenge. */
  readonly checked: readonly CheckedAnswers[];
  readonly required: GpuRequirement;
  readonly host: ClaimingHost;
  /** The sizes of the GPUs' memory according to the hub's inventory. */
  readonly sizes: HostGpuSizes;
}

export interface HostMemory {
  /** The entries about the host's GPUs in the sanitization record. */
  readonly gpus: readonly RecordGpu[];
  readonly statements: readonly Statement[];
  /**
   * The reasons why the cleaning of the host's GPU memory does not meet the profile's requirement, as texts for an operator (decision C2). The list
   * `unmet` is empty if the claim about each GPU has the required level, and enough of each GPU's memory was overwritten.
   */
  readonly unmet: readonly string[];
}

/** Decides for each GPU that the host's GPU reset named which level its cleaning reached, and writes the claim about its memory (decision C2). */
export function judgeHostMemory(facts: HostMemoryFacts): HostMemory {
  const { scrub, filled, challenged, checked, required, host, sizes } = facts;
  const { expected } = gpusOfScrub(scrub);
  const judged = evidenceOf(expected, filled, challenged, checked, sizes).map((evidence) => ({
    evidence,
    verdict: gpuVerdict(evidence),
  }));
  return {
    gpus: judged.map(({ evidence, verdict }) => recordGpu(evidence, verdict, required)),
    statements: judged.map(({ evidence, verdict }) => {
      const { text, not_covered } = gpuClaim(host, evidence, verdict, filled?.input.seed ?? "");
      return { claim: text, not_covered };
    }),
    unmet: unmetRequirement(
      judged.map(({ verdict }) => verdict),
      expected.map(({ uuid }) => uuid),
      required,
    ),
  };
}

/**
 * Returns a GPU's entry in the sanitization record. If a profile requires only the level `reset_only`, no share of the GPU's memory must be
 * overwritten.
 */
const recordGpu = (
  { uuid, commitment, clear, library }: GpuEvidence,
  { level, share, ofBytes }: GpuVerdict,
  required: GpuRequirement,
): RecordGpu => ({
  uuid,
  level,
  share,
  bytes_overwritten: share === 0 ? null : (clear?.cleared_bytes ?? commitment?.allocated_bytes ?? null),
  bytes_total: ofBytes === 0 ? null : ofBytes,
  required_level: required.level,
  required_share: required.level === "reset_only" ? 0 : required.share,
  ...(commitment === null ? {} : { driver_library: library }),
  ...(level === "overwritten" && clear !== null ? { kernel_clear: { sampled_bytes: clear.sampled_bytes } } : {}),
});
