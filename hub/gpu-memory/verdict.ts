import { clearSampleOf, type GpuClear, type GpuCommitment, type GpuRelease } from "../../shared/gpu-memory.ts";
import { GPU_LEVELS, type RecordGpu } from "../../shared/sanitization-record.ts";
import type { CheckedAnswers } from "./expected-answers.ts";

export type GpuClaimLevel = (typeof GPU_LEVELS)[number];

/** The evidence about one GPU of a host after the GPU's cleaning. */
export interface GpuEvidence {
  readonly uuid: string;
  /**
   * The size of the GPU's memory in bytes according to the hub's inventory from before the tenant's use; null if the hub does not know the size.
   */
  readonly expectedBytes: number | null;
  /** The size of the GPU's memory that the GPU's reset reported after the tenant's use, in bytes; null if the reset reported no size. */
  readonly reportedBytes: number | null;
  readonly isReset: boolean;
  readonly commitment: GpuCommitment | null;
  readonly answers: CheckedAnswers | null;
  readonly release: GpuRelease | null;
  /** The report of a host whose kernel driver cleared the GPU's memory; such a host sends no `commitment`, `answers` or `release`. */
  readonly clear: GpuClear | null;
  /**
   * Says whether the library of the GPU driver, through which the worker overwrote the memory, has the same bytes as in its package. If the kernel's
   * driver clears the GPU memory, the library of the GPU driver has no part in it.
   */
  readonly library: DriverLibrary;
}

export type DriverLibrary = NonNullable<RecordGpu["driver_library"]>;

export interface GpuVerdict {
  readonly uuid: string;
  /** The level of the claim about the GPU's memory, or null if the hub can claim nothing about it (decision C2). */
  readonly level: GpuClaimLevel | null;
  /** The overwritten share of the GPU's memory, from 0 to 1. */
  readonly share: number;
  /**
   * The size in bytes of the GPU's whole memory, of which `share` is the overwritten part. The hub takes the largest of the memory sizes that the
   * inventory, the GPU reset, the management library and the driver report.
   */
  readonly ofBytes: number;
  /** The reasons why the claim about the GPU's memory has no higher level (decision C2), as texts for a person. */
  readonly reasons: readonly string[];
}

export interface GpuRequirement {
  readonly level: GpuClaimLevel;
  readonly share: number;
}

/**
 * The smallest number of random blocks of a GPU's memory that one challenge asks for. If a host has not overwritten 10 % of a GPU's memory, a
 * challenge of 64 random blocks misses the fault with a probability of 0.1 %.
 */
export const LEAST_QUESTIONS = 64;

export function gpuVerdict(evidence: GpuEvidence): GpuVerdict {
  const { uuid, commitment, clear, isReset } = evidence;
  const stated = statedBytes(evidence);
  const ofBytes = Math.max(stated, evidence.expectedBytes ?? 0);
  const bytes = clear?.cleared_bytes ?? commitment?.allocated_bytes;
  const contradictions = [
    ...(bytes === undefined ? [] : whyTooSmall(evidence, stated)),
    ...(clear === null ? whyNotOverwritten(evidence, ofBytes) : whyNotCleared(evidence, clear, ofBytes)),
  ];
  if (bytes === undefined || contradictions.length > 0) {
    const reasons = isReset ? contradictions : [...contradictions, `GPU ${uuid} was not reset.`];
    return { uuid, level: isReset ? "reset_only" : null, share: 0, ofBytes, reasons };
  }
  const share = bytes / ofBytes;
  if (clear !== null) return { uuid, level: "overwritten", share, ofBytes, reasons: [onlyCleared(uuid)] };
  const unverified = whyNotVerified(evidence);
  const level = unverified === null ? "challenge_verified" : "overwritten";
  return { uuid, level, share, ofBytes, reasons: unverified === null ? [] : [unverified] };
}

/** Returns the largest size of the GPU's memory that the host states after the tenant's use, in bytes; 0 if the host states none. */
export function statedBytes({
  reportedBytes,
  commitment,
  clear,
}: Pick<GpuEvidence, "reportedBytes" | "commitment" | "clear">): number {
  const sizes = [reportedBytes, commitment?.total_bytes, commitment?.visible_bytes, clear?.total_bytes];
  return Math.max(0, ...sizes.map((size) => size ?? 0));
}

/**
 * After the tenant's use, the host must state at least the part `LEAST_STATED` of the memory size that the GPU had before. Error correction takes up
 * to 7 % of the memory of some GPUs, and another version of the driver may count its own memory differently.
 */
const LEAST_STATED = 0.9;
const whyTooSmall = ({ uuid, expectedBytes: expected }: GpuEvidence, stated: number): string[] =>
  expected === null || stated >= LEAST_STATED * expected
    ? []
    : [`GPU ${uuid} states ${stated} bytes of memory, and had ${expected} bytes before the tenant's use.`];

/**
 * Returns the reasons why the claim about a GPU's memory does not reach the level `overwritten`. A wrong answer to a GPU memory challenge excludes
 * the level `overwritten`, because it contradicts the host's own report of the overwrite.
 */
function whyNotOverwritten({ uuid, commitment, release, answers, library }: GpuEvidence, ofBytes: number): string[] {
  if (commitment === null) return [`GPU ${uuid} was not overwritten.`];
  const reasons: string[] = [];
  const say = (isSo: boolean, reason: string) => void (isSo && reasons.push(reason));
  // A changed library of the GPU driver can report an overwrite that never happened, and compute each answer to the challenge from the seed.
  say(library === "changed", libraryChanged(uuid));
  say(commitment.uuid !== uuid, `The worker of GPU ${uuid} named another GPU, ${commitment.uuid}.`);
  say(commitment.allocated_bytes === 0, `The driver gave no memory of GPU ${uuid} to the worker.`);
  say(commitment.allocated_bytes > ofBytes, `GPU ${uuid} reported more overwritten memory than it has.`);
  say(
    commitment.mismatched_blocks > 0,
    `The memory of GPU ${uuid} differed from what was written in ${commitment.mismatched_blocks} blocks of 64 bytes.`,
  );
  say(
    answers !== null && answers.correct < answers.asked,
    `GPU ${uuid} answered ${(answers?.asked ?? 0) - (answers?.correct ?? 0)} of ${answers?.asked ?? 0} questions wrongly.`,
  );
  if (release === null) return [...reasons, `GPU ${uuid} did not report that its memory was zeroed.`];
  say(release.zeroed_bytes !== commitment.allocated_bytes, `GPU ${uuid} was zeroed only in part.`);
  say(
    release.nonzero_units > 0,
    `GPU ${uuid} had ${release.nonzero_units} units that were not zero after the zeroing.`,
  );
  return reasons;
}

export const libraryChanged = (uuid: string): string =>
  `The library of the GPU driver on the host differs from its package, so the hub does not believe the overwrite of GPU ${uuid}. Install the package again, or reimage the host.`;

const onlyCleared = (uuid: string): string =>
  `The kernel's driver cleared the memory of GPU ${uuid}, and the hub cannot ask about memory that is zero. Only an overwrite through HIP can reach challenge_verified.`;

/**
 * The reasons why the hub does not believe that the kernel's driver cleared a GPU's memory. Without a sample of the cleared memory, nobody has seen
 * that the memory is zero.
 */
function whyNotCleared({ uuid, commitment }: GpuEvidence, clear: GpuClear, ofBytes: number): string[] {
  const { cleared_bytes: cleared, sampled_bytes: sampled, bar_bytes: bar } = clear;
  const reasons: string[] = [];
  const say = (isSo: boolean, reason: string) => void (isSo && reasons.push(reason));
  say(commitment !== null, `GPU ${uuid} reported both an overwrite of its own and a clear by the kernel's driver.`);
  say(clear.uuid !== uuid, `The worker of GPU ${uuid} named another GPU, ${clear.uuid}.`);
  say(cleared === 0, `The driver gave no memory of GPU ${uuid} to the worker.`);
  say(cleared > ofBytes, `GPU ${uuid} reported more cleared memory than it has.`);
  say(
    sampled < clearSampleOf(cleared),
    `Only ${sampled} of ${clearSampleOf(cleared)} bytes of the memory of GPU ${uuid} were read after the kernel's driver cleared it: the host's processor reaches ${bar ?? "an unknown number of"} of ${clear.total_bytes} bytes.`,
  );
  say(sampled > cleared, `GPU ${uuid} reported a larger sample than the cleared memory.`);
  say(
    clear.nonzero_units > 0,
    `The memory of GPU ${uuid} had ${clear.nonzero_units} units that were not zero after the kernel's driver cleared it.`,
  );
  return reasons;
}

const sizeUnknown = (uuid: string): string =>
  `The hub has no size of the memory of GPU ${uuid} from before the tenant's use, so the size is the word of the host alone.`;

function whyNotVerified({ answers, uuid, expectedBytes }: GpuEvidence): string | null {
  if (answers === null) return `GPU ${uuid} answered no challenge.`;
  if (answers.asked < LEAST_QUESTIONS)
    return `GPU ${uuid} answered only ${answers.asked} questions, and ${LEAST_QUESTIONS} are needed.`;
  return expectedBytes === null ? sizeUnknown(uuid) : null;
}

/**
 * Returns the reasons why the GPUs of a host do not meet the requirement of its profile. `unmetRequirement` returns an empty list if all GPUs of the
 * host meet the profile's requirement.
 */
export function unmetRequirement(
  verdicts: readonly GpuVerdict[],
  expectedUuids: readonly string[],
  { level, share }: GpuRequirement,
): string[] {
  const rank = (one: GpuClaimLevel | null): number => (one === null ? -1 : GPU_LEVELS.indexOf(one));
  const known = new Set(verdicts.map(({ uuid }) => uuid));
  const missing = expectedUuids.filter((uuid) => !known.has(uuid)).map((uuid) => `Nothing is known of GPU ${uuid}.`);
  const unmet = verdicts.flatMap((verdict) => {
    if (rank(verdict.level) < rank(level))
      return [
        `GPU ${verdict.uuid} reached ${verdict.level ?? "no level"}, and ${level} is required.`,
        ...verdict.reasons,
      ];
    if (level !== "reset_only" && verdict.share < share)
      return [`${percent(verdict.share)} of GPU ${verdict.uuid} was overwritten, and ${percent(share)} is required.`];
    return [];
  });
  return [...missing, ...unmet];
}

/** `percent` rounds the overwritten share of a memory down, so that a text never claims more than was overwritten. */
export const percent = (share: number): string => `${(Math.floor(share * 10_000) / 100).toFixed(2)} %`;
