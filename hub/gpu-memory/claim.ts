import type { GpuClear } from "../../shared/gpu-memory.ts";
import { KERNEL_CLEAR } from "../../shared/sanitization-sentences.ts";
import { type GpuEvidence, type GpuVerdict, libraryChanged } from "./verdict.ts";

/** The version of the agent, the boot and the image of a host; a claim about the memory of the host's GPUs relies on the reports of this software. */
export interface ClaimingHost {
  readonly at: Date;
  readonly agentVersion: string;
  readonly bootId: string;
  readonly image: string | null;
  readonly secureBoot: "on" | "off" | "unknown";
}

export interface GpuClaim {
  readonly text: string;
  /** The kinds of memory that the claim about a GPU's cleaned memory does not cover. */
  readonly not_covered: readonly string[];
}

const NEVER_COVERED = [
  "caches, shared memory and registers of the GPU",
  "spare and retired memory rows",
  "firmware and flash memory of the GPU",
  "copies elsewhere",
];

/**
 * Writes the claim about one GPU's memory for the sanitization record. The claim about a GPU's memory attributes each of its statements to the
 * software of the host. The text of a claim never says that anything is proven, certified or securely erased, because a compromised host can compute
 * every answer.
 */
export function gpuClaim(host: ClaimingHost, evidence: GpuEvidence, verdict: GpuVerdict, seed: string): GpuClaim {
  const who = `At ${host.at.toISOString()}, Muster's agent ${host.agentVersion} (boot ${host.bootId}, image ${host.image ?? "unknown"}, Secure Boot ${host.secureBoot})`;
  const { commitment, clear } = evidence;
  if (verdict.level === null)
    return {
      text: `Muster claims nothing about the memory of GPU ${evidence.uuid}.`,
      not_covered: ["the whole memory of the GPU", ...NEVER_COVERED],
    };
  if (verdict.level === "overwritten" && clear !== null) return clearClaim(who, evidence, clear, verdict);
  if (verdict.level === "reset_only" || commitment === null) {
    const isDoubted = commitment !== null && evidence.library === "changed";
    const overwrite = isDoubted
      ? libraryChanged(evidence.uuid)
      : `Muster did not overwrite the memory of GPU ${evidence.uuid}.`;
    return {
      text: `${who} reported that GPU ${evidence.uuid} was reset. ${overwrite} ${RELIANCE}`,
      not_covered: ["the whole memory of the GPU", ...NEVER_COVERED],
    };
  }
  const answered =
    verdict.level === "challenge_verified"
      ? ` It answered ${evidence.answers?.correct ?? 0} questions about random blocks correctly, which the hub chose after the overwrite.`
      : "";
  const where = commitment.kernels_error === null ? "on the device" : "in copies that the host read back";
  const unreached = verdict.ofBytes - commitment.allocated_bytes;
  return {
    text: `${who} reported that it overwrote ${commitment.allocated_bytes} of ${verdict.ofBytes} bytes on GPU ${evidence.uuid} with data derived from seed ${seed}, which was issued for this task. It found ${commitment.mismatched_blocks} mismatches ${where}.${answered} It zeroed these bytes and found them zero. ${RELIANCE}`,
    not_covered: [
      `${unreached} bytes of the GPU's memory that the driver does not give to a process`,
      ...unknownSize(evidence),
      ...(evidence.library === "unchecked" ? [UNCHECKED_LIBRARY] : []),
      ...NEVER_COVERED,
    ],
  };
}

/** Without a size from before the tenant's use, nothing shows that the host states all of a GPU's memory. */
const unknownSize = ({ expectedBytes }: GpuEvidence): string[] => (expectedBytes === null ? [UNKNOWN_SIZE] : []);
const UNKNOWN_SIZE =
  "memory of the GPU that the host did not state, because the hub has no size of the memory from before the tenant's use";
const UNCHECKED_LIBRARY =
  "the library of the GPU driver, which the agent could not compare with a package, for example because no package owns it";

/**
 * The claim about a GPU whose memory the kernel's driver cleared. The claim about a cleared GPU says who wrote the zeros, and how little of the
 * memory the host read afterwards.
 */
const clearClaim = (who: string, evidence: GpuEvidence, clear: GpuClear, { ofBytes }: GpuVerdict): GpuClaim => ({
  text: `${who} reported that the amdgpu driver of the kernel gave it ${clear.cleared_bytes} of ${ofBytes} bytes on GPU ${evidence.uuid} in buffers which that driver clears, and that a sample of ${clear.sampled_bytes} bytes at random places in them was zero: ${KERNEL_CLEAR}. ${RELIANCE}`,
  not_covered: [
    `${ofBytes - clear.cleared_bytes} bytes of the GPU's memory that the driver does not give to a process`,
    `${clear.cleared_bytes - clear.sampled_bytes} bytes of the GPU's memory that nobody read after the kernel's driver had cleared them`,
    "GPU memory that the kernel's driver did not clear again, because the driver had recorded it as cleared",
    ...unknownSize(evidence),
    ...NEVER_COVERED,
  ],
});

const RELIANCE =
  "It does not show that no copy exists elsewhere, and it relies on the integrity of the host software named above.";
