import { z } from "zod";
import { Timestamp } from "./api/values.ts";
import { NodeId, TaskId, WorkflowId } from "./ids.ts";
import { canonicalJson } from "./json.ts";
import { MOST_RECORD_BYTES, MOST_RECORD_TASKS, RECORD_FORMAT, RecordAgent, Sha256 } from "./sanitization-format.ts";
import { CleaningSteps } from "./tasks/cleaning-step.ts";

/** The operating system that ran the cleaning: the tenant's own system, a new system, or a new system after the machine was without power. */
export const TRUST_LEVELS = ["in_place", "reimaged", "reimaged_cold"] as const;
export const RECORD_VERDICTS = ["clean", "not_clean", "incomplete"] as const;
export type RecordVerdict = (typeof RECORD_VERDICTS)[number];

/**
 * The reasons for the verdict of a sanitization record, each with the verdict to which the reason leads. The verdict `not_clean` takes precedence
 * over `incomplete`.
 */
export const VERDICT_REASONS = {
  step_failed: "not_clean",
  task_failed: "not_clean",
  required_missing: "not_clean",
  required_not_ok: "not_clean",
  residue_found: "not_clean",
  evidence_refused: "not_clean",
  erase_disproved: "not_clean",
  gpu_below_required: "not_clean",
  erase_without_evidence: "incomplete",
  erase_waived: "incomplete",
  erase_not_asked: "incomplete",
  nothing_required: "incomplete",
  only_planned: "incomplete",
  residue_missing: "incomplete",
  residue_unreadable: "incomplete",
  no_baseline: "incomplete",
  task_unconfirmed: "incomplete",
  not_signed: "incomplete",
} as const satisfies Record<string, RecordVerdict>;
export type VerdictReason = keyof typeof VERDICT_REASONS;
const REASON_CODES = Object.keys(VERDICT_REASONS) as [VerdictReason, ...VerdictReason[]];

const Short = z.string().max(256);
const Name = z.string().min(1).max(64);
/** A code that is no free text, such as the name of a task type or of a residue item. */
const Code = z.string().regex(/^[A-Za-z0-9._:-]{1,64}$/);
const Uuid = z.uuid();

/** A cleaning step that the node's profile requires. A requirement whose `step` is null means all steps of the task type. */
const Requirement = z.strictObject({ type: Code, step: Code.nullable() });
export type Requirement = z.output<typeof Requirement>;

const RecordTask = z.strictObject({
  task_id: TaskId,
  epoch: z.int().min(1),
  type: Code,
  /**
   * The SHA-256 of the task's result in canonical JSON. For a task that ended without a result, `result_sha256` is null, and `error` contains the
   * task's error.
   */
  result_sha256: Sha256.nullable(),
  error: Code.nullable(),
  steps: CleaningSteps,
});
export type RecordTask = z.output<typeof RecordTask>;

export const MOST_REFUSED = 64;
/** A disk that a task reports as purged, although the evidence does not fit the hub's order. The record then claims no method for the disk. */
const RefusedEvidence = z.strictObject({
  task_id: TaskId,
  target: Short,
  code: Code,
  message: z.string().max(160),
});
export type RefusedEvidence = z.output<typeof RefusedEvidence>;

export const MOST_RESIDUE_NAMES = 100;
const ResidueItem = z.strictObject({
  item: Code,
  status: z.enum(["clean", "found", "unreadable"]),
  names: z.array(Short).max(MOST_RESIDUE_NAMES),
  /** The number of findings that the sanitization record does not name. */
  more: z.int().min(0),
  /** Why the residue item is unreadable. */
  reason: Short.nullable(),
});
export type ResidueItem = z.output<typeof ResidueItem>;
const Residue = z.strictObject({
  verdict: z.enum(["clean", "found", "unreadable", "no_baseline"]),
  items: z.array(ResidueItem).max(128),
});
export type Residue = z.output<typeof Residue>;

/** The levels of a claim about GPU memory, from the lowest to the highest (decision C2). */
export const GPU_LEVELS = ["reset_only", "overwritten", "challenge_verified"] as const;
const Share = z.number().min(0).max(1);
/** What the hub concludes about the memory of one GPU, and what the node's profile requires. */
const RecordGpu = z.strictObject({
  uuid: Short,
  /** The claim level is null if the hub can claim nothing about the GPU's memory. */
  level: z.enum(GPU_LEVELS).nullable(),
  share: Share,
  bytes_overwritten: z.number().nullable(),
  bytes_total: z.number().nullable(),
  required_level: z.enum(GPU_LEVELS).nullable(),
  required_share: Share,
  /** The member is present if the level is `overwritten` because the kernel's driver cleared the memory, and a sample of it was zero. */
  kernel_clear: z.strictObject({ sampled_bytes: z.int().min(1) }).optional(),
});
export type RecordGpu = z.output<typeof RecordGpu>;

/**
 * What shows that MAAS erased the disks of a machine when MAAS released the machine. The report of MAAS is not about single disks (decision C5).
 */
export const ERASE_EVIDENCE = ["reported_by_maas", "none"] as const;
export const MOST_DISK_FINDINGS = 32;
/** How MAAS released the machine of the system that the host had before its present system. */
const RecordRelease = z.strictObject({
  maas_system_id: Short,
  /** The generation of the node whose system MAAS released. */
  generation: z.int().min(0),
  /** The erase of the disks for which the operation asked MAAS. */
  erase: z.enum(["none", "quick", "secure"]),
  evidence: z.enum(ERASE_EVIDENCE),
  /** The person who decided to continue without evidence of the erase, or null if no person decided so. */
  waived_by: Short.nullable(),
  /** What the disks of the new system show against the erase, disk by disk. The member is absent if they show nothing against it. */
  disk_findings: z.array(Short).min(1).max(MOST_DISK_FINDINGS).optional(),
});
export type RecordRelease = z.output<typeof RecordRelease>;

/**
 * A medium of the host, such as a disk, with the fields of a sanitization certificate of NIST SP 800-88. A field of a medium is null if nobody
 * reported its value.
 */
const Medium = z.strictObject({
  kind: Name,
  maker: Short.nullable(),
  model: Short.nullable(),
  serial: Short.nullable(),
  /** Where the medium (for example a disk) is: the hostname of the node. */
  source: Short,
  method: z.enum(["clear", "purge", "none"]),
  technique: Short.nullable(),
  tool: Short.nullable(),
  tool_version: Short.nullable(),
  bytes_treated: z.number().nullable(),
  bytes_total: z.number().nullable(),
  verification: Short.nullable(),
  verification_result: Short.nullable(),
});
export type Medium = z.output<typeof Medium>;

/** The parts that the hub may cut from a sanitization record that would be too large. */
const CUT_PARTS = [
  "steps",
  "evidence",
  "messages",
  "residue_names",
  "residue_reasons",
  "media",
  "reasons",
  "claims",
  "not_covered",
] as const;

const Sentence = z.string().min(1).max(2_048);

/** A sanitization record names at most this many ways of a tenant to the rights of root. */
export const MOST_RECORDED_WAYS = 64;

/**
 * The sanitization record of one turnover (architecture 14.5, decision C1). The agent signs the canonical JSON of the sanitization record, and the
 * hub countersigns the SHA-256 of that JSON. A new member of the format must be optional, so that readers still read earlier records. A reader that
 * does not know a member refuses the record. Every other change of the format needs another name.
 */
export const SanitizationRecord = z.strictObject({
  format: z.literal(RECORD_FORMAT),
  record_id: Uuid,
  node: z.strictObject({
    id: NodeId,
    hostname: Short,
    generation: z.int().min(0),
    system_id: Short.nullable(),
    vendor: Short.nullable(),
    product: Short.nullable(),
    system_uuid: Short.nullable(),
  }),
  /** The number of the sanitization record among the node's records, from 1 on, and the SHA-256 of the node's previous record. */
  sequence: z.int().min(1),
  previous_sha256: Sha256.nullable(),
  allocation: z
    .strictObject({
      id: Uuid,
      tenant: Short,
      login_user: Name,
      /** True if the allocation granted the rights of root. Records that an older hub wrote without `root_by` say true also for a found way. */
      granted_root: z.boolean(),
      /** The ways to the rights of root that the agent found without a grant. The member is absent if the agent found none (decision C4). */
      root_by: z.array(Name).min(1).max(MOST_RECORDED_WAYS).optional(),
      from: Timestamp.nullable(),
      to: Timestamp.nullable(),
    })
    .nullable(),
  operation: z.strictObject({ decommission_id: WorkflowId, mode: Code, reason: Short, requested_by: Short }),
  trust: z.enum(TRUST_LEVELS),
  /** The release of the earlier system. The member is absent if the host has kept its system. */
  release: RecordRelease.optional(),
  started_at: Timestamp,
  finished_at: Timestamp,
  required: z.array(Requirement).max(32),
  tasks: z.array(RecordTask).max(MOST_RECORD_TASKS),
  /** Tasks of the turnover whose results the agent's journal does not have, so that the agent cannot confirm the results. */
  unconfirmed_tasks: z.array(TaskId).max(MOST_RECORD_TASKS),
  /** The purges that the hub does not believe. The member is absent if the hub believes all purges. */
  refused_evidence: z.array(RefusedEvidence).min(1).max(MOST_REFUSED).optional(),
  residue: Residue.nullable(),
  gpus: z.array(RecordGpu).max(64),
  media: z.array(Medium).max(512),
  verdict: z.enum(RECORD_VERDICTS),
  reasons: z.array(z.strictObject({ code: z.enum(REASON_CODES), about: z.string().max(400) })).max(512),
  claims: z.array(Sentence).max(1_024),
  not_covered: z.array(Sentence).max(1_024),
  /**
   * What the sanitization record leaves out because it would be too large otherwise. The SHA-256 of a task's result covers the whole result, also
   * what the record leaves out.
   */
  cut: z.array(z.strictObject({ what: z.enum(CUT_PARTS), kept: z.int().min(0), of: z.int().min(1) })),
  agent: RecordAgent.strict().nullable(),
  signed_by_agent: z.boolean(),
  unsigned_reason: Short.nullable(),
  hub: z.strictObject({ version: Name }),
});
export type SanitizationRecord = z.output<typeof SanitizationRecord>;

/** The length in bytes of a text in UTF-8. */
export const bytesOf = (text: string): number => new TextEncoder().encode(text).length;

/**
 * Parses the text of a sanitization record. If `text` is not the canonical JSON of a sanitization record, `readRecord` returns the reason as a text.
 */
export function readRecord(text: string): SanitizationRecord | string {
  if (bytesOf(text) > MOST_RECORD_BYTES) return `it has more than ${MOST_RECORD_BYTES} bytes`;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // If the sanitization record is not JSON, `readRecord` returns that reason as a text.
    return "it is not JSON";
  }
  if (canonicalJson(value) !== text) return "it is not canonical JSON";
  const parsed = SanitizationRecord.safeParse(value);
  if (parsed.success) return parsed.data;
  const [fault] = parsed.error.issues;
  return `${fault?.path.join(".") ?? ""}: ${fault?.message ?? "is not valid"}`;
}
