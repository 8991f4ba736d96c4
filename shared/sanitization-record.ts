import { z } from "zod";
import { Timestamp } from "./api/values.ts";
import { NodeId, TaskId, WorkflowId } from "./ids.ts";
import { canonicalJson } from "./json.ts";
import { RecordLocation, RecordPerformer, RecordValidator } from "./sanitization-certificate.ts";
import { DESTINATIONS } from "./sanitization-destination.ts";
import { MOST_RECORD_BYTES, MOST_RECORD_TASKS, RECORD_FORMAT, RecordAgent, Sha256 } from "./sanitization-format.ts";
import { CleaningSteps } from "./tasks/cleaning-step.ts";

/** The operating system that ran the cleaning: the tenant's own system, a new system, or a new system after the machine was without power. */
export const TRUST_LEVELS = ["in_place", "reimaged", "reimaged_cold"] as const;
export const RECORD_VERDICTS = ["clean", "not_clean", "incomplete"] as const;
export type RecordVerdict = (typeof RECORD_VERDICTS)[number];

/** Each reason for the verdict of a sanitization record leads to one verdict. The verdict `not_clean` takes precedence over `incomplete`. */
export const VERDICT_REASONS = {
  step_failed: "not_clean",
  task_failed: "not_clean",
  required_missing: "not_clean",
  required_not_ok: "not_clean",
  residue_found: "not_clean",
  evidence_refused: "not_clean",
  erase_disproved: "not_clean",
  gpu_below_required: "not_clean",
  never_cleaned: "not_clean",
  cleaning_unfinished: "incomplete",
  erase_without_evidence: "incomplete",
  erase_waived: "incomplete",
  erase_not_asked: "incomplete",
  nothing_required: "incomplete",
  only_planned: "incomplete",
  residue_missing: "incomplete",
  residue_unreadable: "incomplete",
  no_baseline: "incomplete",
  task_unconfirmed: "incomplete",
  erase_not_compared: "incomplete",
  gpu_not_judged: "incomplete",
  not_signed: "incomplete",
} as const satisfies Record<string, RecordVerdict>;
export type VerdictReason = keyof typeof VERDICT_REASONS;
const REASON_CODES = Object.keys(VERDICT_REASONS) as [VerdictReason, ...VerdictReason[]];

const Short = z.string().max(256);
const Name = z.string().min(1).max(64);
/** A code in a sanitization record is a fixed word and never free text, for example the name of a task type or of a residue item. */
const Code = z.string().regex(/^[A-Za-z0-9._:-]{1,64}$/);
const Uuid = z.uuid();

/**
 * A cleaning step that the node's profile requires in the cleaning between two tenants. If `step` of a requirement is null, the node's profile
 * requires all cleaning steps of the task type.
 */
const Requirement = z.strictObject({ type: Code, step: Code.nullable() });
export type Requirement = z.output<typeof Requirement>;

const RecordTask = z.strictObject({
  task_id: TaskId,
  epoch: z.int().min(1),
  type: Code,
  /** If a task ended without a result, `result_sha256` is null and `error` contains the task's error. */
  result_sha256: Sha256.nullable(),
  error: Code.nullable(),
  steps: CleaningSteps,
});
export type RecordTask = z.output<typeof RecordTask>;

export const MOST_REFUSED = 64;
/**
 * A task reported the disk as purged, but the hub does not believe it, because the evidence does not fit the hub's order. The sanitization record
 * claims no method for a disk whose purge the hub does not believe.
 */
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
  /** `level`, the hub's claim about a GPU's memory, is null if the hub can claim nothing. */
  level: z.enum(GPU_LEVELS).nullable(),
  share: Share,
  bytes_overwritten: z.number().nullable(),
  bytes_total: z.number().nullable(),
  required_level: z.enum(GPU_LEVELS).nullable(),
  required_share: Share,
  /**
   * `kernel_clear` is present if the claim level of a GPU is `overwritten` because the kernel's driver cleared the GPU's memory, and a sample of the
   * memory was zero.
   */
  kernel_clear: z.strictObject({ sampled_bytes: z.int().min(1) }).optional(),
  /**
   * The library of the GPU driver through which the agent overwrote the memory, compared with its package on the host. If `driver_library` is
   * `changed`, because the library differs from its package, the hub does not believe that the agent overwrote the GPU's memory. `driver_library` is
   * absent in sanitization records of hubs that did not compare the library, and if the agent overwrote no GPU memory through the library.
   */
  driver_library: z.enum(["as_packaged", "changed", "unchecked"]).optional(),
});
export type RecordGpu = z.output<typeof RecordGpu>;

/**
 * The hub's evidence that MAAS erased the disks of a machine when it released the machine. The evidence of an erase by MAAS concerns the whole
 * machine, because MAAS reports nothing about single disks (decision C5).
 */
export const ERASE_EVIDENCE = ["reported_by_maas", "none"] as const;
export const MOST_DISK_FINDINGS = 32;
/** MAAS's release of the machine before the deploy of the host's present system, with the evidence that MAAS erased the disks. */
const RecordRelease = z.strictObject({
  maas_system_id: Short,
  /** The node's generation (the number of the host's installation) to which the released operating system belonged. */
  generation: z.int().min(0),
  /** The kind of disk erase that the decommission requested from MAAS. */
  erase: z.enum(["none", "quick", "secure"]),
  evidence: z.enum(ERASE_EVIDENCE),
  /** The person who let the operation continue without evidence of the disk erase, or null if no person did. */
  waived_by: Short.nullable(),
  /**
   * What speaks against MAAS's erase of the disks, one text for each disk: for example blocks that did not change, or a disk that the host no longer
   * shows. `disk_findings` is absent if nothing speaks against the erase of the disks.
   */
  disk_findings: z.array(Short).min(1).max(MOST_DISK_FINDINGS).optional(),
  /**
   * The person who decided to continue although the `disk_findings` speak against the erase. `disks_waived_by` is absent if no person decided to
   * continue although the comparison of the disks speaks against the erase.
   */
  disks_waived_by: Short.optional(),
  /**
   * The number of disks for which MAAS's release script says how it erased the disk. `disks_reported` is absent if MAAS stored no report of its
   * release script.
   */
  disks_reported: z.int().min(1).optional(),
  /**
   * The number of disk blocks that the agent compared with their content before the release. `blocks_compared` is absent if the agent compared no
   * disk blocks with their content before the release.
   */
  blocks_compared: z.int().min(1).optional(),
  /**
   * The number of compared disk blocks whose earlier content the hub knows only from the system of a tenant with the rights of root. A tenant with
   * the rights of root could invent the earlier content of blocks, so such blocks are no evidence of the erase, and `blocks_compared` is absent. In
   * sanitization records of older hubs, `blocks_doubted` (the number of disk blocks that are no evidence) is absent.
   */
  blocks_doubted: z.int().min(1).optional(),
  /**
   * The number of disks that the new system read after a secure erase and of which each sampled block held only one byte, such as zeros.
   * `disks_blank` is absent if a disk had other content, if no secure erase was requested, or if the tenant could not become root.
   */
  disks_blank: z.int().min(1).optional(),
});
export type RecordRelease = z.output<typeof RecordRelease>;

/** How a tenant's use of a host ended without a finished cleaning: the node was removed, or MAAS released the machine. */
export const LOST_BY = ["node_removed", "host_released"] as const;
/**
 * The tenant's use of the host ended without a finished turnover (the cleaning between two tenants), because the node was removed or MAAS released
 * the machine.
 */
const WithoutTurnover = z.strictObject({
  because: z.enum(LOST_BY),
  /** The operation that began to clean the host and did not finish; null if no operation cleaned anything. */
  begun: z.strictObject({ decommission_id: WorkflowId, mode: Code }).nullable(),
});
export type WithoutTurnover = z.output<typeof WithoutTurnover>;

/**
 * A medium of the host, for example a disk, has the fields of a sanitization certificate of NIST SP 800-88. A field of a medium is null if nobody
 * reported its value.
 */
const Medium = z.strictObject({
  kind: Name,
  maker: Short.nullable(),
  model: Short.nullable(),
  serial: Short.nullable(),
  /** The hostname of the node says where the medium is. */
  source: Short,
  method: z.enum(["clear", "purge", "none"]),
  technique: Short.nullable(),
  tool: Short.nullable(),
  tool_version: Short.nullable(),
  bytes_treated: z.number().nullable(),
  bytes_total: z.number().nullable(),
  verification: Short.nullable(),
  verification_result: Short.nullable(),
  /** The revision of the medium's firmware; absent if nobody reported it. */
  firmware: Short.optional(),
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

/** The largest number of ways by which a tenant could become root that a sanitization record names. */
export const MOST_RECORDED_WAYS = 64;

/**
 * The agent signs the canonical JSON of the sanitization record (decision C1), and the hub countersigns its SHA-256 (architecture 14.5). A new member
 * of the sanitization record's format must be optional, so that readers still read older records. A reader refuses a sanitization record with a
 * member that it does not know. The format of sanitization records gets a new name for every change other than a new optional member.
 */
export const SanitizationRecord = z.strictObject({
  format: z.literal(RECORD_FORMAT),
  /**
   * The version of the rules by which the hub decides the verdict of the sanitization record. `rules` is absent in a sanitization record that follows
   * the first version of the rules for verdicts.
   */
  rules: z.literal(2).optional(),
  record_id: Uuid,
  node: z.strictObject({
    id: NodeId,
    hostname: Short,
    generation: z.int().min(0),
    system_id: Short.nullable(),
    vendor: Short.nullable(),
    product: Short.nullable(),
    system_uuid: Short.nullable(),
    /** The asset tag of the node, which a certificate of NIST SP 800-88 calls the property number; absent if nobody had said it. */
    property_number: Short.optional(),
  }),
  /** The host's `location` is absent if the node was already deleted from the hub's database, and in sanitization records of older hubs. */
  location: RecordLocation.optional(),
  /** A node's sanitization records are numbered from 1 on, and each contains the SHA-256 of the record before it. */
  sequence: z.int().min(1),
  previous_sha256: Sha256.nullable(),
  allocation: z
    .strictObject({
      id: Uuid,
      tenant: Short,
      login_user: Name,
      /**
       * True if the allocation granted the tenant the rights of root. In a record of an older hub, which lacks `root_by`, `granted_root` is also true
       * if the agent found another way to the rights of root.
       */
      granted_root: z.boolean(),
      /**
       * The ways to the rights of root that the agent found although the allocation did not grant them (decision C4). `root_by` (these ways to the
       * rights of root) is absent if the agent found none.
       */
      root_by: z.array(Name).min(1).max(MOST_RECORDED_WAYS).optional(),
      from: Timestamp.nullable(),
      to: Timestamp.nullable(),
    })
    .nullable(),
  /**
   * The allocation's last sanitization record before the present one, for example of a cleaning that failed. The last sanitization record of an
   * allocation, which ended the tenant's use of the host, is the one that no other record of the allocation names in `follows`. `follows` is absent
   * in the first sanitization record of an allocation.
   */
  follows: Uuid.optional(),
  /**
   * `without_turnover` is present if the host was removed or released without a cleaning that could write the sanitization record. If a sanitization
   * record has `without_turnover`, its member `operation` names the operation that removed the node or released the machine.
   */
  without_turnover: WithoutTurnover.optional(),
  operation: z.strictObject({ decommission_id: WorkflowId, mode: Code, reason: Short, requested_by: Short }),
  /**
   * Where the host and its media go after the operation that the sanitization record is about. `destination`, where the host goes, is absent in
   * sanitization records of older hubs.
   */
  destination: z.enum(DESTINATIONS).optional(),
  /** Who cleaned the host. `performed_by` is absent if nobody cleaned the host, and in sanitization records of older hubs. */
  performed_by: RecordPerformer.optional(),
  /** Who validated the cleaning. `validated_by` is absent in sanitization records of older hubs. */
  validated_by: RecordValidator.optional(),
  trust: z.enum(TRUST_LEVELS),
  /** How MAAS released the machine from the host's earlier system. `release` is absent if the host has kept its operating system. */
  release: RecordRelease.optional(),
  started_at: Timestamp,
  finished_at: Timestamp,
  required: z.array(Requirement).max(32),
  tasks: z.array(RecordTask).max(MOST_RECORD_TASKS),
  /** Tasks of the cleaning whose results the agent's journal does not have, so that the agent cannot confirm the results. */
  unconfirmed_tasks: z.array(TaskId).max(MOST_RECORD_TASKS),
  /**
   * The disk purges that agents reported and that the hub does not believe. `refused_evidence` is absent if the hub believes all disk purges that
   * agents reported.
   */
  refused_evidence: z.array(RefusedEvidence).min(1).max(MOST_REFUSED).optional(),
  residue: Residue.nullable(),
  gpus: z.array(RecordGpu).max(64),
  media: z.array(Medium).max(512),
  verdict: z.enum(RECORD_VERDICTS),
  reasons: z.array(z.strictObject({ code: z.enum(REASON_CODES), about: z.string().max(400) })).max(512),
  claims: z.array(Sentence).max(1_024),
  not_covered: z.array(Sentence).max(1_024),
  /**
   * What the hub left out of the sanitization record to keep it below the largest size. The SHA-256 of a task's result covers the whole result,
   * including the parts that are left out of the sanitization record.
   */
  cut: z.array(z.strictObject({ what: z.enum(CUT_PARTS), kept: z.int().min(0), of: z.int().min(1) })),
  agent: RecordAgent.strict().nullable(),
  signed_by_agent: z.boolean(),
  unsigned_reason: Short.nullable(),
  hub: z.strictObject({ version: Name }),
});
export type SanitizationRecord = z.output<typeof SanitizationRecord>;

export const bytesOf = (text: string): number => new TextEncoder().encode(text).length;

/** Returns a text with the reason if `text` is not the canonical JSON of a sanitization record. */
export function readRecord(text: string): SanitizationRecord | string {
  if (bytesOf(text) > MOST_RECORD_BYTES) return `it has more than ${MOST_RECORD_BYTES} bytes`;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // If the text of a sanitization record is not JSON, `readRecord` returns a text that says so.
    return "it is not JSON";
  }
  if (canonicalJson(value) !== text) return "it is not canonical JSON";
  const parsed = SanitizationRecord.safeParse(value);
  if (parsed.success) return parsed.data;
  const [fault] = parsed.error.issues;
  return `${fault?.path.join(".") ?? ""}: ${fault?.message ?? "is not valid"}`;
}
