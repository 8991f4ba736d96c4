import {
  GPU_LEVELS,
  type LOST_BY,
  type RecordGpu,
  type RecordRelease,
  type RecordTask,
  type RecordVerdict,
  type Requirement,
  type Residue,
  type ResidueItem,
  type SanitizationRecord,
  VERDICT_REASONS,
  type VerdictReason,
} from "./sanitization-record.ts";
import type { CleaningStep } from "./tasks/cleaning-step.ts";

export interface Reason {
  readonly code: VerdictReason;
  readonly about: string;
}
export type Judged = Pick<
  SanitizationRecord,
  | "rules"
  | "required"
  | "tasks"
  | "unconfirmed_tasks"
  | "refused_evidence"
  | "residue"
  | "gpus"
  | "media"
  | "trust"
  | "release"
  | "without_turnover"
  | "signed_by_agent"
  | "unsigned_reason"
>;

export interface Done extends CleaningStep {
  readonly type: string;
  readonly taskId: string;
}

/**
 * Returns the last outcome of each cleaning step on each target, such as a disk. If two tasks of one type did the same cleaning step, the second
 * task's outcome decides.
 */
export function lastSteps(tasks: readonly RecordTask[]): readonly Done[] {
  const last = new Map<string, Done>();
  for (const { type, task_id: taskId, steps } of tasks)
    for (const step of steps) last.set(JSON.stringify([type, step.step, step.target]), { ...step, type, taskId });
  return [...last.values()];
}

/** The list `tasks` is in the order in which the hub queued the tasks, so the last task of each type in it is the newest. */
const lastTasks = (tasks: readonly RecordTask[]): readonly RecordTask[] => [
  ...new Map(tasks.map((task) => [task.type, task])).values(),
];

/** True if a profile's requirement names the given cleaning step, or all cleaning steps of the step's task type. */
const meets = ({ type, step }: Requirement, done: Done): boolean =>
  done.type === type && (step === null || done.step === step);

const nameOf = ({ type, step }: Requirement): string => (step === null ? type : `${step} of ${type}`);
/** Makes a text that a host reported safe for the reason of a verdict: removes characters that a terminal would interpret. */
const told = (text: string): string => text.replace(/[^\p{L}\p{N}\p{P}\p{S} ]/gu, "?").slice(0, 120);
const about = (done: Done): string => `${told(done.step)} of ${done.type} on ${told(done.target)}`;

/**
 * Returns why a cleaning between two tenants does not meet a requirement of the node's profile, or null if it meets the requirement. A requirement
 * that names a cleaning step is met if the step was `ok` on every target. A requirement for a whole task type is met if at least one step was `ok`,
 * and every other step was `ok` or skipped. A cleaning step may be skipped, because a host need not have everything that a task would clean.
 */
function faultOf(requirement: Requirement, steps: readonly Done[]): Reason | null {
  const own = steps.filter((done) => meets(requirement, done));
  if (own.length === 0) return { code: "required_missing", about: nameOf(requirement) };
  const isOk = ({ outcome }: Done): boolean => outcome === "ok" || (requirement.step === null && outcome === "skipped");
  const other = own.find((done) => !isOk(done)) ?? (own.some(({ outcome }) => outcome === "ok") ? undefined : own[0]);
  return other === undefined ? null : { code: "required_not_ok", about: `${about(other)}: ${other.outcome}` };
}

/**
 * Returns the verdict about residue, which is what a tenant left on the host. If the agent read no residue item, the verdict about residue is
 * `unreadable`.
 */
export function residueVerdict(hasBaseline: boolean, items: readonly ResidueItem[]): Residue["verdict"] {
  if (items.some(({ status }) => status === "found")) return "found";
  if (items.length === 0 || items.some(({ status }) => status === "unreadable")) return "unreadable";
  return hasBaseline ? "clean" : "no_baseline";
}

const RESIDUE_REASONS = {
  clean: null,
  found: "residue_found",
  unreadable: "residue_unreadable",
  no_baseline: "no_baseline",
} as const satisfies Record<Residue["verdict"], VerdictReason | null>;

function residueReasons({ rules, residue, trust }: Judged): Reason[] {
  if (residue === null)
    return rules === 2 || trust === "in_place"
      ? [{ code: "residue_missing", about: "no task looked for residue" }]
      : [];
  const code = RESIDUE_REASONS[residue.verdict];
  if (code === null) return [];
  const status = residue.verdict === "found" ? "found" : "unreadable";
  const named = residue.items.filter((one) => one.status === status).map(({ item }) => item);
  return [{ code, about: (named.join(", ") || "the node has no baseline, or nothing was looked at").slice(0, 400) }];
}

/**
 * Returns the reasons to doubt that MAAS erased the disks when it released the machine from its earlier operating system. If a person decided to
 * continue without evidence of an erase, this decision is no evidence.
 */
function releaseReasons({ rules, release }: Judged): Reason[] {
  if (release === undefined) return [];
  const { erase, waived_by: person, disk_findings: findings } = release;
  if (release.evidence !== "none") return rules === 2 && isOneWord(release) ? [notCompared(release)] : [];
  if (findings !== undefined) {
    const disproved = { code: "erase_disproved", about: findings.map(told).join("; ").slice(0, 400) } as const;
    const waiver = rules === 2 ? (release.disks_waived_by ?? null) : person;
    return waiver === null ? [disproved] : [disproved, waived(waiver, erase)];
  }
  if (erase === "none")
    return [{ code: "erase_not_asked", about: "the operation asked MAAS for no erase of the disks" }];
  return person === null
    ? [{ code: "erase_without_evidence", about: `nothing shows the erase of kind ${erase} in MAAS` }]
    : [waived(person, erase)];
}

/**
 * True if MAAS's report about the whole machine is the only evidence of the erase. MAAS's report about the whole machine may be the same although the
 * erase failed on one disk. A comparison of disk blocks with their earlier content is no evidence of an erase if that content was only reported by
 * the operating system of a tenant with the rights of root.
 */
const isOneWord = ({ disks_reported, blocks_compared, disks_blank }: RecordRelease): boolean =>
  disks_reported === undefined && blocks_compared === undefined && disks_blank === undefined;

const notCompared = ({ erase, blocks_doubted: doubted }: RecordRelease): Reason => ({
  code: "erase_not_compared",
  about: `MAAS reported the erase of kind ${erase} for the machine, no report names a disk, and ${
    doubted === undefined
      ? "no block of a disk was compared"
      : `${doubted} blocks were compared only with what the system of a tenant with root had reported`
  }`,
});

const waived = (person: string, erase: string): Reason => ({
  code: "erase_waived",
  about: `${told(person)} continued without evidence of the erase of kind ${erase}`,
});

/** True if a GPU's claim level (decision C2), or the share of its memory that was overwritten, is lower than the node's profile requires. */
const isBelow = ({ level, share, required_level, required_share }: RecordGpu): boolean =>
  required_level !== null &&
  (level === null || GPU_LEVELS.indexOf(level) < GPU_LEVELS.indexOf(required_level) || share < required_share);

const gpuReasons = ({ gpus }: Judged): Reason[] =>
  gpus.filter(isBelow).map(({ uuid, level, share, required_level, required_share }) => ({
    code: "gpu_below_required",
    about: `${told(uuid)}: ${level ?? "nothing"} of a share of ${share}, and ${required_level} of ${required_share} is required`,
  }));

/** A GPU of the host's inventory about whose memory the hub concluded nothing. The host's inventory names no UUID of a GPU. */
const unjudgedGpus = ({ rules, media }: Judged): Reason[] => {
  const left = media.filter(({ kind, serial }) => kind === "gpu_memory" && serial === null);
  return rules !== 2 || left.length === 0
    ? []
    : [{ code: "gpu_not_judged", about: `${left.length} GPUs of the inventory, and the SKU may count fewer GPUs` }];
};

/** How a host left Muster's management, as the end of a sentence about the host. */
const LOST = {
  node_removed: "before its node was removed",
  host_released: "before MAAS released its machine",
} as const satisfies Record<(typeof LOST_BY)[number], string>;

/** If a tenant's use ended without a finished turnover (the cleaning between two tenants), returns the reason for a verdict other than `clean`. */
function turnoverReasons({ without_turnover: without }: Judged): Reason[] {
  if (without === undefined) return [];
  const { because, begun } = without;
  return begun === null
    ? [{ code: "never_cleaned", about: `no operation cleaned the host ${LOST[because]}` }]
    : [
        {
          code: "cleaning_unfinished",
          about: `${begun.mode} ${begun.decommission_id} did not finish the cleaning of the host ${LOST[because]}`,
        },
      ];
}

/** The tasks whose results are evidence for the verdict although no profile can require a cleaning step of these tasks. */
const EVIDENCE_TASKS: readonly string[] = ["node.validate_clean", "node.sample_disks"];

/** True if the verdict depends on the task `taskId`: on a required cleaning step of the task, or on the task's result. */
const restsOn = (record: Judged, taskId: string): boolean =>
  (record.rules === 2 &&
    record.tasks.some(({ task_id, type }) => task_id === taskId && EVIDENCE_TASKS.includes(type))) ||
  lastSteps(record.tasks).some(
    (done) => done.taskId === taskId && record.required.some((requirement) => meets(requirement, done)),
  );

/**
 * Returns the verdict of a sanitization record with all its reasons. The verdict of a sanitization record fails closed: what nobody did, read or
 * signed is never clean. A cleaning step that is neither required nor possible on the host does not change the verdict. The record's member
 * `not_covered` names each cleaning step that was not possible on the host.
 */
export function judge(record: Judged): { readonly verdict: RecordVerdict; readonly reasons: readonly Reason[] } {
  const steps = lastSteps(record.tasks);
  const reasons: Reason[] = [
    ...steps
      .filter(({ outcome }) => outcome === "failed")
      .map((done) => ({ code: "step_failed", about: about(done) }) as const),
    ...lastTasks(record.tasks)
      .filter(({ result_sha256 }) => result_sha256 === null)
      .map(({ type, error }) => ({ code: "task_failed", about: `${type}: ${error ?? "no result"}` }) as const),
    ...record.required.flatMap((requirement) => faultOf(requirement, steps) ?? []),
    ...(record.refused_evidence ?? []).map(
      ({ target, code, message }) =>
        ({ code: "evidence_refused", about: `disk ${told(target)}: ${code}, ${message}` }) as const,
    ),
    ...residueReasons(record),
    ...gpuReasons(record),
    ...unjudgedGpus(record),
    ...releaseReasons(record),
    ...turnoverReasons(record),
    // The deploy of a new system is a cleaning too, so a sanitization record with MAAS's release may require no cleaning step of the agent.
    ...(record.required.length === 0 && record.release === undefined && record.without_turnover === undefined
      ? [{ code: "nothing_required", about: "no cleaning step is required" } as const]
      : []),
    ...steps
      .filter(({ outcome }) => outcome === "planned")
      .map((done) => ({ code: "only_planned", about: about(done) }) as const),
    ...record.unconfirmed_tasks
      .filter((taskId) => restsOn(record, taskId))
      .map((taskId) => ({ code: "task_unconfirmed", about: `task ${taskId} is not in the agent's journal` }) as const),
    ...(record.signed_by_agent
      ? []
      : [{ code: "not_signed", about: record.unsigned_reason ?? "the agent did not sign" } as const]),
  ];
  const verdicts = new Set<RecordVerdict>(reasons.map(({ code }) => VERDICT_REASONS[code]));
  const verdict = verdicts.has("not_clean") ? "not_clean" : verdicts.has("incomplete") ? "incomplete" : "clean";
  return { verdict, reasons };
}
