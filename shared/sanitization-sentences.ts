import { mediumKindOf } from "./medium-steps.ts";
import type { LOST_BY, Medium, RecordGpu, RefusedEvidence, SanitizationRecord } from "./sanitization-record.ts";
import { erasedByRelease, isErasedByRelease, releaseClaims, releaseGaps } from "./sanitization-release.ts";
import { type Done, lastSteps } from "./sanitization-verdict.ts";

/** Words that no claim of a sanitization record may contain, because no cleaning step is strong enough evidence for them (decision C2). */
export const FORBIDDEN = /proven|proof|certif|secure(ly)?[ -]eras|guarantee/i;

const text = (value: unknown): string | null => (typeof value === "string" && value !== "" ? value : null);
const count = (value: unknown): number | null => (typeof value === "number" && value >= 0 ? value : null);
const METHODS = ["clear", "purge"] as const;

/**
 * Returns the medium that a cleaning step worked on, from the step's evidence. The medium of a cleaning step is null if the step's evidence names no
 * medium, or if the step is not one by which the hub orders the cleaning of media. The medium gets a sanitization method (`clear` or `purge`) only if
 * the cleaning step's outcome is `ok` and the hub believes its evidence.
 */
function mediumOf(
  { type, step, outcome, evidence }: Done,
  refused: RefusedEvidence | null,
  source: string,
): Medium | null {
  const kind = mediumKindOf(type, step);
  if (kind === null || evidence["media_kind"] !== kind) return null;
  const isDone = outcome === "ok" && refused === null;
  const method = METHODS.find((one) => isDone && one === evidence["method"]) ?? "none";
  const firmware = text(evidence["firmware"]);
  return {
    kind,
    maker: text(evidence["maker"]),
    model: text(evidence["model"]),
    serial: text(evidence["serial"]),
    source,
    method,
    technique: text(evidence["technique"]),
    tool: text(evidence["tool"]),
    tool_version: text(evidence["tool_version"]),
    bytes_treated: refused === null ? count(evidence["bytes_treated"]) : null,
    bytes_total: count(evidence["bytes_total"]),
    verification: refused === null ? text(evidence["verification"]) : "comparison with the order of the hub",
    verification_result:
      refused === null ? text(evidence["verification_result"]) : `${refused.code}: ${refused.message}`,
    ...(firmware === null ? {} : { firmware }),
  };
}

export interface KnownMedium {
  readonly kind: string;
  readonly model: string | null;
  readonly serial: string | null;
}

/** What the agent of the host's new system read of one disk. */
export interface DiskSampleOf {
  readonly serial: string;
  readonly model: string | null;
  readonly verification: string;
  readonly verification_result: string;
}

const NOTHING_DONE = {
  maker: null,
  method: "none",
  technique: null,
  tool: null,
  tool_version: null,
  bytes_treated: null,
  bytes_total: null,
  verification: null,
  verification_result: null,
} as const;

/**
 * Returns the memory of a GPU as a medium of the sanitization record. A reset of a GPU is no sanitization method, because a reset does not overwrite
 * the memory.
 */
const gpuMedium = (
  { uuid, level, bytes_overwritten, bytes_total, kernel_clear: clear }: RecordGpu,
  source: string,
): Medium => ({
  ...NOTHING_DONE,
  kind: "gpu_memory",
  model: null,
  serial: uuid,
  source,
  method: level === "overwritten" || level === "challenge_verified" ? "clear" : "none",
  technique: clear === undefined ? level : KERNEL_CLEAR,
  tool: clear === undefined ? "muster-agent" : "amdgpu driver of the kernel",
  bytes_treated: bytes_overwritten,
  bytes_total,
  ...gpuVerification(level, clear),
});

/** The name of the technique by which the kernel's driver cleared a GPU's memory. */
export const KERNEL_CLEAR = "overwritten (kernel clear), sampled";

function gpuVerification(
  level: RecordGpu["level"],
  clear: RecordGpu["kernel_clear"],
): Pick<Medium, "verification" | "verification_result"> {
  if (clear !== undefined)
    return { verification: `sample of ${clear.sampled_bytes} bytes by the agent`, verification_result: "zero" };
  return level === "challenge_verified"
    ? { verification: "questions of the hub about random blocks", verification_result: "answered correctly" }
    : { verification: null, verification_result: null };
}

/**
 * The media of a host are those that cleaning steps worked on, the memory of each judged GPU, and the other media of the inventory. For a disk that
 * no cleaning step worked on, the sanitization record names the erase by MAAS if there is evidence of it.
 */
export function mediaOf(
  {
    tasks,
    gpus,
    release,
    refused_evidence: refused = [],
  }: Pick<SanitizationRecord, "tasks" | "gpus" | "release" | "refused_evidence">,
  known: readonly KnownMedium[],
  samples: readonly DiskSampleOf[],
  source: string,
): Medium[] {
  const treated = [
    ...lastSteps(tasks).flatMap((done) => {
      const not = refused.find(({ task_id, target }) => task_id === done.taskId && target === done.target);
      return mediumOf(done, not ?? null, source) ?? [];
    }),
    ...gpus.map((gpu) => gpuMedium(gpu, source)),
  ];
  const serials = new Set(treated.flatMap(({ serial }) => serial ?? []));
  const kinds = new Map<string, number>();
  for (const { kind } of treated) kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  const left = known.filter(({ kind, serial }) => {
    if (serial !== null) return !serials.has(serial);
    // The inventory has no serial numbers of some media, such as GPUs; of these, only the number of media of each kind is compared with the number of
    // cleaned media.
    const rest = kinds.get(kind) ?? 0;
    kinds.set(kind, rest - 1);
    return rest <= 0;
  });
  const erased = erasedByRelease(release);
  return [
    ...treated,
    ...left.map((medium) => ({
      ...NOTHING_DONE,
      ...medium,
      source,
      ...(medium.kind === "disk" ? { ...erased, ...sampleOf(samples, medium.serial) } : {}),
    })),
    ...samples
      .filter(({ serial }) => !serials.has(serial) && left.every((medium) => medium.serial !== serial))
      .map((sample) => ({ ...NOTHING_DONE, kind: "disk", source, ...erased, ...sample })),
  ];
}

/** What the agent read from a disk after the deploy replaces what MAAS's report about the whole machine says about the disk. */
function sampleOf(samples: readonly DiskSampleOf[], serial: string | null): Partial<Medium> {
  const found = samples.find((sample) => sample.serial === serial);
  return found === undefined
    ? {}
    : { verification: found.verification, verification_result: found.verification_result };
}

/**
 * Makes a text that a host reports, for example a disk's model, safe for a sentence of the sanitization record. A text that a host reported is
 * replaced by "without a name" if it contains a word that no claim of a sanitization record may contain, for example "proven".
 */
const told = (value: string | null): string =>
  value === null || FORBIDDEN.test(value) || !/^[\x20-\x7e]{1,80}$/.test(value) ? "without a name" : value;
const nameOf = ({ kind, model, serial }: Medium): string =>
  `${told(kind)} (model ${told(model)}, serial number ${told(serial)})`;

function mediumClaim(medium: Medium): string {
  const { technique, tool, tool_version, method, bytes_treated, bytes_total, verification, verification_result } =
    medium;
  const how = technique === null ? "" : ` by the technique ${told(technique)}`;
  const by = tool === null ? "" : ` with ${told(tool)} ${tool_version === null ? "" : told(tool_version)}`.trimEnd();
  const share =
    bytes_treated === null ? "" : ` It treated ${bytes_treated} of ${bytes_total ?? "an unknown number of"} bytes.`;
  const check =
    verification === null
      ? " Nothing verified the result."
      : ` Verification by ${told(verification)}: ${told(verification_result)}.`;
  return `The agent reported that it cleaned ${nameOf(medium)}${how}${by}, method class ${method}.${share}${check}`;
}

type Told = Omit<SanitizationRecord, "claims" | "not_covered" | "cut">;

const NEW_SYSTEM =
  "MAAS released the machine of the earlier system and deployed a new system, and the agent that signed this record runs on the new system.";
const TRUST_CLAIMS = {
  in_place: [],
  reimaged: [NEW_SYSTEM],
  reimaged_cold: [
    NEW_SYSTEM,
    "Between the release of the earlier system and the deploy of the new system, the BMC reported through MAAS that the machine was off.",
  ],
} as const satisfies Record<SanitizationRecord["trust"], readonly string[]>;

/** The code of one kind of cleaning, for example of GPU memory, adds sentences of its own to the sanitization record. */
export interface Statement {
  readonly claim: string;
  readonly not_covered: readonly string[];
}

/** Returns the sentences that a sanitization record claims word for word. A sanitization record that no agent signed claims nothing. */
export function claimsOf(record: Told, statements: readonly Statement[]): string[] {
  const { agent, tasks, media, residue, trust } = record;
  if (!record.signed_by_agent || agent === null) return [];
  const steps = lastSteps(tasks);
  const types = [...new Set(steps.map(({ type }) => type))];
  const ofType = (type: string): string => {
    const own = steps.filter((done) => done.type === type);
    const ok = own.filter(({ outcome }) => outcome === "ok").length;
    return `At ${record.finished_at} the agent ${told(agent.version)} (boot ${told(agent.boot_id)}) had reported ${ok} of ${own.length} steps of ${told(type)} as ok.`;
  };
  return [
    ...types.map(ofType),
    ...media.filter(({ kind, method }) => method !== "none" && kind !== "gpu_memory").map(mediumClaim),
    ...statements.map(({ claim }) => claim).filter((claim) => !FORBIDDEN.test(claim)),
    ...(residue?.verdict === "clean" ? [residueClaim(residue.items.length, trust)] : []),
    ...releaseClaims(record.release),
    ...TRUST_CLAIMS[trust],
  ];
}

const residueClaim = (kinds: number, trust: SanitizationRecord["trust"]): string =>
  trust === "in_place"
    ? `The agent compared ${kinds} kinds of host state with the node's baseline and found nothing that a tenant left.`
    : `The agent compared ${kinds} kinds of host state with the baseline of the new system and found nothing that was not in the baseline.`;

const ALWAYS = [
  "This record does not say that no copy of data exists elsewhere, for example on network storage, in a backup or on another machine.",
  "This record relies on the integrity of the agent and of the system on which the agent ran.",
  "Firmware and its settings (UEFI, BMC, NICs, disks, GPUs) and the TPM were not cleaned.",
] as const;
const IN_PLACE =
  "The cleaning and its checks ran on the system that the tenant had used. A tenant who became root could have changed this system.";
const NEW_BASELINE =
  "The baseline is of the new system, so the comparison does not show what the earlier system left on a disk.";
const MEMORY = {
  in_place: "Host memory was not overwritten, and the machine was not without power.",
  reimaged:
    "Host memory was not overwritten, and nothing shows that the machine was off before the new system started.",
  reimaged_cold:
    "Host memory was not overwritten. Nobody measured how long the machine was off, and nobody read host memory afterwards.",
} as const satisfies Record<SanitizationRecord["trust"], string>;
const MEMORY_UNKNOWN = "Host memory was not overwritten, and nothing shows that the machine was without power.";
const LOST = {
  node_removed:
    "The node was removed from Muster after the tenant's use, and no later record of the node can say that the host was cleaned.",
  host_released:
    "MAAS released the machine after the tenant's use. This record does not say what happened to the host after the release.",
} as const satisfies Record<(typeof LOST_BY)[number], string>;

/** Returns sentences about a tenant's use that ended without a finished turnover. */
const withoutTurnover = (without: SanitizationRecord["without_turnover"]): string[] =>
  without === undefined
    ? []
    : [
        without.begun === null
          ? "No operation of Muster cleaned the host after the tenant's use."
          : `The operation ${without.begun.decommission_id} began to clean the host after the tenant's use, and did not finish.`,
        LOST[without.because],
      ];
const LATER_RELEASE =
  "This record was written before MAAS released the machine. It does not cover the release, and no erase of the disks by the release.";
const GPU_REST =
  "Regions of GPU memory that the driver reserves, and caches, registers and flash of the GPUs, were not overwritten.";

const untreated = (medium: Medium): string =>
  isErasedByRelease(medium)
    ? `Nothing shows for ${nameOf(medium)} alone that MAAS erased it, or by which technique.`
    : `Not cleaned: ${nameOf(medium)}.`;
const notPossible = ({ step, type, target }: Done): string =>
  `The step ${told(step)} of ${told(type)} on ${told(target)} was not possible on this host.`;

/** Returns the sentences about what a sanitization record does not cover, word for word. */
export function notCoveredBy(record: Told, statements: readonly Statement[]): string[] {
  const { trust, allocation, media, tasks, without_turnover: without } = record;
  const ways = allocation?.root_by ?? [];
  const hasGpu = media.some(({ kind }) => kind.startsWith("gpu"));
  return [
    ...ALWAYS,
    ...withoutTurnover(without),
    ...(trust === "in_place" && (without === undefined || tasks.length > 0) ? [IN_PLACE] : []),
    ...(trust === "in_place" && allocation?.granted_root === true
      ? ["The tenant of the allocation had root access."]
      : []),
    ...(trust === "in_place" && ways.length > 0
      ? [`The tenant of the allocation could get root access by ${ways.join(", ")}.`]
      : []),
    ...(trust === "in_place" || record.residue === null ? [] : [NEW_BASELINE]),
    without === undefined || trust !== "in_place" ? MEMORY[trust] : MEMORY_UNKNOWN,
    ...releaseGaps(record.release),
    ...(record.operation.mode === "full_decommission" && without === undefined ? [LATER_RELEASE] : []),
    ...(hasGpu ? [GPU_REST] : []),
    ...new Set(statements.flatMap(({ not_covered }) => not_covered)),
    ...media.filter(({ method }) => method === "none").map(untreated),
    ...lastSteps(tasks)
      .filter(({ outcome }) => outcome === "unsupported")
      .map(notPossible),
  ];
}
