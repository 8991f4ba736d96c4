import { canonicalJson } from "./json.ts";
import { partiesOf } from "./sanitization-certificate.ts";
import { destinationOf } from "./sanitization-destination.ts";
import { MOST_RECORD_BYTES, RECORD_FORMAT } from "./sanitization-format.ts";
import { bytesOf, MOST_RESIDUE_NAMES, type ResidueItem, SanitizationRecord } from "./sanitization-record.ts";
import {
  claimsOf,
  type DiskSampleOf,
  type KnownMedium,
  mediaOf,
  notCoveredBy,
  type Statement,
} from "./sanitization-sentences.ts";
import { judge, residueVerdict } from "./sanitization-verdict.ts";
import type { CleaningStep } from "./tasks/cleaning-step.ts";

/** The facts of a cleaning between two tenants (turnover) from which the hub makes a sanitization record. */
export interface RecordFacts
  extends Pick<
    SanitizationRecord,
    | "record_id"
    | "node"
    | "location"
    | "sequence"
    | "previous_sha256"
    | "allocation"
    | "follows"
    | "without_turnover"
    | "operation"
    | "trust"
    | "release"
    | "started_at"
    | "finished_at"
    | "required"
    | "tasks"
    | "unconfirmed_tasks"
    | "refused_evidence"
    | "gpus"
    | "agent"
    | "hub"
  > {
  /** `residue` is null if no task of the cleaning compared the host with its state before the first tenant. */
  readonly residue: { readonly has_baseline: boolean; readonly items: readonly ResidueItem[] } | null;
  readonly known_media: readonly KnownMedium[];
  /** What the agent of the host's new system read of the disks. */
  readonly disk_samples: readonly DiskSampleOf[];
  /** Sentences that other parts of the hub add to the sanitization record, for example about the memory of each GPU. */
  readonly statements: readonly Statement[];
  /** Why the hub asks no agent to sign the sanitization record; null if the hub asks an agent. */
  readonly unsigned_reason: string | null;
}

/**
 * Each part of a sanitization record is limited in size. If a sanitization record is too large, the hub makes it again with the next narrower limits.
 */
interface Limits {
  readonly names: number;
  readonly reasonText: number;
  /**
   * How much evidence of cleaning steps a sanitization record contains: of all steps, only of the steps that are neither `ok` nor skipped, or of
   * none.
   */
  readonly evidence: "all" | "bad" | "none";
  readonly message: number;
  readonly goodSteps: number;
  readonly badSteps: number;
  readonly media: number;
  readonly sentences: number;
}
const WHOLE: Limits = {
  names: MOST_RESIDUE_NAMES,
  reasonText: 256,
  evidence: "all",
  message: 512,
  goodSteps: 200,
  badSteps: 200,
  media: 512,
  sentences: 512,
};
const NARROWER: readonly Partial<Limits>[] = [
  { names: 20 },
  { evidence: "bad" },
  { message: 80, names: 5 },
  { goodSteps: 40, media: 128, sentences: 128 },
  { goodSteps: 8, evidence: "none" },
  { goodSteps: 0, badSteps: 40, sentences: 32, media: 24 },
  { badSteps: 5, names: 1, reasonText: 40 },
  { badSteps: 0, names: 0, reasonText: 0, media: 0, sentences: 6, message: 0 },
];
const ALL_LIMITS: readonly Limits[] = [WHOLE, ...NARROWER].map((_, level) =>
  Object.assign({}, WHOLE, ...NARROWER.slice(0, level)),
);

const isGood = ({ outcome }: CleaningStep): boolean => outcome === "ok" || outcome === "skipped";

function limitSteps(steps: readonly CleaningStep[], limits: Limits): CleaningStep[] {
  const left = { good: limits.goodSteps, bad: limits.badSteps };
  const kept = steps.filter((step) => (isGood(step) ? left.good-- : left.bad--) > 0);
  return kept.map((step) => ({
    ...step,
    message: step.message.slice(0, limits.message),
    evidence: limits.evidence === "all" || (limits.evidence === "bad" && !isGood(step)) ? step.evidence : {},
  }));
}

const limitItem = (one: ResidueItem, { names, reasonText }: Limits): ResidueItem => ({
  ...one,
  names: one.names.slice(0, names),
  more: one.more + Math.max(0, one.names.length - names),
  reason: reasonText === 0 ? null : (one.reason?.slice(0, reasonText) ?? null),
});

const limited = (record: SanitizationRecord, limits: Limits): SanitizationRecord => ({
  ...record,
  tasks: record.tasks.map((task) => ({ ...task, steps: limitSteps(task.steps, limits) })),
  residue: record.residue && {
    ...record.residue,
    items: record.residue.items.map((one) => limitItem(one, limits)),
  },
  media: record.media.slice(0, limits.media),
  reasons: record.reasons.slice(0, limits.sentences),
  claims: record.claims.slice(0, limits.sentences),
  not_covered: record.not_covered.slice(0, limits.sentences),
});

/**
 * Counts the parts of a sanitization record, so that the hub can say how many parts a shortened record leaves out. `countsOf` does not count a text
 * of the record that the hub has shortened.
 */
function countsOf(
  { tasks, residue, media, reasons, claims, not_covered }: SanitizationRecord,
  whole: SanitizationRecord,
) {
  const steps = tasks.flatMap((task) => task.steps);
  const messages = new Set(whole.tasks.flatMap((task) => task.steps.map(({ message }) => message)));
  const texts = new Set(whole.residue?.items.map(({ reason }) => reason) ?? []);
  const items = residue?.items ?? [];
  return {
    steps: steps.length,
    evidence: steps.reduce((sum, { evidence }) => sum + Object.keys(evidence).length, 0),
    messages: steps.filter(({ message }) => message !== "" && messages.has(message)).length,
    residue_names: items.reduce((sum, { names }) => sum + names.length, 0),
    residue_reasons: items.filter(({ reason }) => reason !== null && texts.has(reason)).length,
    media: media.length,
    reasons: reasons.length,
    claims: claims.length,
    not_covered: not_covered.length,
  } satisfies Record<SanitizationRecord["cut"][number]["what"], number>;
}

function cutOf(kept: SanitizationRecord, whole: SanitizationRecord): SanitizationRecord["cut"] {
  const [now, before] = [countsOf(kept, whole), countsOf(whole, whole)];
  return (Object.keys(before) as (keyof typeof before)[])
    .filter((what) => now[what] < before[what])
    .map((what) => ({ what, kept: now[what], of: before[what] }));
}

/**
 * False if the texts in `value` alone are larger than a sanitization record may be. To add up the lengths of the texts is far faster than to make the
 * JSON text, which takes up to a second if a hostile host has reported as much as it can.
 */
function mayFit(value: unknown): boolean {
  let left = MOST_RECORD_BYTES;
  const open: unknown[] = [value];
  while (open.length > 0 && left >= 0) {
    const one = open.pop();
    // In JSON, each character of a text takes at least one byte.
    if (typeof one === "string") left -= one.length;
    else if (one !== null && typeof one === "object") for (const member of Object.values(one)) open.push(member);
  }
  return left >= 0;
}

/**
 * The verdict of a sanitization record follows from all facts of the cleaning, also from facts that the record leaves out. A sanitization record that
 * would be too large leaves out its least important facts, and says how many it leaves out.
 */
export function buildRecord(facts: RecordFacts): { readonly record: SanitizationRecord; readonly text: string } {
  const { residue, known_media, disk_samples, statements, unsigned_reason, ...same } = facts;
  const judged = {
    ...same,
    format: RECORD_FORMAT,
    rules: 2,
    ...partiesOf({ ...same, rules: 2 }),
    destination: destinationOf(same.operation.mode),
    signed_by_agent: unsigned_reason === null && same.agent !== null,
    unsigned_reason: unsigned_reason ?? (same.agent === null ? "the node has no agent with a certificate" : null),
    residue: residue && { verdict: residueVerdict(residue.has_baseline, residue.items), items: [...residue.items] },
    media: mediaOf(same, known_media, disk_samples, same.node.hostname),
  } as const;
  const { verdict, reasons } = judge(judged);
  const told = { ...judged, verdict, reasons: [...reasons] };
  const whole: SanitizationRecord = {
    ...told,
    claims: claimsOf(told, statements),
    not_covered: notCoveredBy(told, statements),
    cut: [],
  };
  for (const limits of ALL_LIMITS) {
    const kept = limited(whole, limits);
    if (!mayFit(kept)) continue;
    const record = { ...kept, cut: cutOf(kept, whole) };
    const text = canonicalJson(record);
    if (bytesOf(text) <= MOST_RECORD_BYTES) return { record: SanitizationRecord.parse(record), text };
  }
  throw new Error(`record ${facts.record_id} does not fit into ${MOST_RECORD_BYTES} bytes`);
}
