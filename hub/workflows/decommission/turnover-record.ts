import { compareResidue } from "../../../shared/residue/compare.ts";
import { ResidueSnapshot } from "../../../shared/residue/snapshot.ts";
import {
  MOST_DISK_FINDINGS,
  MOST_RECORDED_WAYS,
  MOST_REFUSED,
  type RecordRelease,
  type Requirement,
} from "../../../shared/sanitization-record.ts";
import { recordResidue } from "../../../shared/sanitization-residue.ts";
import { TASKS } from "../../../shared/tasks/index.ts";
import { type DecommissionStage, STAGES_OF_MODE } from "../../../shared/workflow-status.ts";
import { readDeployedImage } from "../../db/queries/deployed-images.ts";
import { readBaseline } from "../../db/queries/node-baselines.ts";
import { readGpuSizes } from "../../db/queries/node-inventories.ts";
import { newestOfEachType } from "../../db/queries/task-reads.ts";
import type { Tenancy } from "../../db/queries/tenancies.ts";
import { readWorkflow } from "../../db/queries/workflows.ts";
import type { Task } from "../../db/schema/index.ts";
import type { Tx } from "../../db/tx.ts";
import type { HostMemory } from "../../gpu-memory/host-memory.ts";
import { RESET_STEPS } from "../../node/gpu-reset-verdict.ts";
import type { Turnover } from "../../node/prepare-record.ts";
import type { DecommissionContext } from "./decommission-context.ts";
import {
  comparedBlocks,
  type DiskCheck,
  type DiskFinding,
  diskStatement,
  findingsOf,
  readDiskCheck,
  unreadStatement,
} from "./disk-check.ts";
import { hostMemoryOf, isAcceptedUnasked, needsOverwrite } from "./gpu-memory.ts";
import { readKnownDisks } from "./known-disks.ts";
import { refusedPurges } from "./purge-evidence.ts";
import { tenantOf } from "./tenant.ts";

/** What the hub must know of a decommission for a sanitization record of its cleaning. */
export type TurnoverContext = Pick<
  DecommissionContext,
  "workflowId" | "input" | "state" | "node" | "decommission" | "profile" | "tenancy"
>;

const RECORDED = [
  "node.drain",
  "allocation.revoke_user",
  "node.storage_cleanup",
  "node.gpu_scrub",
  "node.gpu_fill",
  "node.gpu_challenge",
  "node.validate_clean",
  "node.sample_disks",
] as const;

/**
 * The steps of the agent's tasks that must have succeeded for the host to count as clean. A requirement whose `step` is null demands that all steps
 * of the task have succeeded.
 */
function requirementsOf(context: TurnoverContext): Requirement[] {
  const { tenancy, input, node, decommission, state } = context;
  const stages: readonly DecommissionStage[] = STAGES_OF_MODE[decommission.mode];
  const of = (stage: DecommissionStage, needed: boolean, requirements: readonly Requirement[]) =>
    needed && stages.includes(stage) ? requirements : [];
  const whole = (type: (typeof RECORDED)[number]): Requirement => ({ type, step: null });
  const reset = RESET_STEPS.map((step) => ({ type: "node.gpu_scrub", step }));
  const asked = isAcceptedUnasked(state.gpu_memory) ? [] : [whole("node.gpu_challenge")];
  const overwrite = [whole("node.gpu_fill"), ...asked];
  return [
    ...of("revoke_users", tenancy !== null, [whole("allocation.revoke_user")]),
    ...of("cleanup_storage", input.storage_cleanup !== "none", [whole("node.storage_cleanup")]),
    ...of("scrub_gpu", node.gpusTotal > 0, reset),
    ...of("overwrite_gpu_memory", needsOverwrite(context), overwrite),
  ];
}

/** Returns the facts about the operation's release of the host's earlier system, or undefined if the operation released no system. */
export function releaseOf(
  {
    decommission,
    state,
    input,
    node,
    tenancy,
  }: Pick<DecommissionContext, "decommission" | "state" | "input" | "node" | "tenancy">,
  check: DiskCheck | null,
): RecordRelease | undefined {
  const { releasedGeneration: generation, maasSystemId } = decommission;
  if (generation === null || maasSystemId === null) return undefined;
  const findings = check === null ? [] : findingsOf(input.erase, check);
  const isReported = input.erase !== "none" && state.erase_reported === generation && findings.length === 0;
  const isWaived = !isReported && input.erase !== "none" && state.erase_waived === generation;
  const disksWaiver = disksWaivedBy(findings, state, node);
  return {
    maas_system_id: maasSystemId,
    generation,
    erase: input.erase,
    evidence: isReported ? "reported_by_maas" : "none",
    waived_by: isWaived ? (state.erase_waived_by ?? "unknown").slice(0, 256) : null,
    ...(disksWaiver === null ? {} : { disks_waived_by: disksWaiver }),
    ...(isReported && (state.erase_disks ?? 0) > 0 ? { disks_reported: state.erase_disks ?? 0 } : {}),
    ...(check === null ? {} : comparedBlocks(check, tenancy)),
    ...(findings.length === 0
      ? {}
      : { disk_findings: findings.slice(0, MOST_DISK_FINDINGS).map(({ text }) => text.slice(0, 256)) }),
  };
}

/**
 * Returns the person who decided that the operation continues although findings speak against the erase of the disks. `disksWaivedBy` returns null if
 * nobody decided to continue in spite of findings about the disks.
 */
const disksWaivedBy = (
  findings: readonly DiskFinding[],
  state: DecommissionContext["state"],
  { generation }: DecommissionContext["node"],
): string | null =>
  findings.length > 0 && state.disks_waived === generation ? (state.disks_waived_by ?? "unknown").slice(0, 256) : null;

/** A reimage claims no cold start if the BMC did not report that the machine was off. */
const trustOf = ({ decommission: { mode, releasedGeneration }, state }: TurnoverContext): Turnover["trust"] => {
  if (mode !== "reimage") return "in_place";
  return releasedGeneration !== null && state.seen_off === releasedGeneration ? "reimaged_cold" : "reimaged";
};

/** The agent of a host's earlier system is gone, and cannot confirm the result of a task that ran on the earlier system. */
const ranOnThisSystem = ({ state }: TurnoverContext, { createdAt }: Task): boolean =>
  state.deployed_at === null || state.deployed_at === undefined || createdAt >= new Date(state.deployed_at);

async function residueOf(tx: Tx, context: TurnoverContext, tasks: readonly Task[]): Promise<Turnover["residue"]> {
  const task = tasks.find(({ type, state }) => type === "node.validate_clean" && state === "succeeded");
  const result = TASKS["node.validate_clean"].result.safeParse(task?.result);
  if (!result.success) return null;
  const { node } = context;
  const known = ResidueSnapshot.safeParse((await readBaseline(tx, node.id, node.generation))?.baseline.snapshot);
  const judgement = compareResidue(known.success ? known.data : null, result.data.snapshot, tenantOf(context));
  return recordResidue(judgement, known.success);
}

/**
 * Returns the disk purges whose evidence from the agent does not fit the hub's order. If the evidence of every disk purge fits the hub's order, the
 * sanitization record has no field for refused purges.
 */
async function refusedOf(
  tx: Tx,
  { node }: TurnoverContext,
  tasks: readonly Task[],
): Promise<Pick<Turnover, "refused_evidence">> {
  const task = tasks.find(({ type, state }) => type === "node.storage_cleanup" && state === "succeeded");
  const result = TASKS["node.storage_cleanup"].result.safeParse(task?.result);
  if (task === undefined || !result.success) return {};
  const { bytes } = await readKnownDisks(tx, node);
  const refused = await refusedPurges(tx, task, result.data.steps, bytes);
  return refused.length === 0 ? {} : { refused_evidence: refused.slice(0, MOST_REFUSED) };
}

async function memoryOf(tx: Tx, context: TurnoverContext, tasks: readonly Task[]): Promise<HostMemory | null> {
  if (context.node.gpusTotal === 0) return null;
  const newest = (type: Task["type"]): Task | null => tasks.find((task) => task.type === type) ?? null;
  const [scrub, fill] = [newest("node.gpu_scrub"), newest("node.gpu_fill")];
  return hostMemoryOf(
    context,
    { scrub, fill, challenge: newest("node.gpu_challenge") },
    context.state.gpu_memory ?? null,
    await readDeployedImage(tx, context.node.id, context.node.generation),
    await readGpuSizes(tx, context.node.id),
  );
}

/** Returns what a sanitization record says about the tenant's use of the host, which ended at the time `to` or earlier. */
export const allocationOf = (tenancy: Tenancy, to: Date): NonNullable<Turnover["allocation"]> => ({
  id: tenancy.allocationId,
  tenant: tenancy.tenant,
  login_user: tenancy.loginUser,
  granted_root: tenancy.grantsRoot,
  ...(tenancy.rootBy.length === 0 ? {} : { root_by: tenancy.rootBy.slice(0, MOST_RECORDED_WAYS) }),
  from: tenancy.activeAt?.toISOString() ?? null,
  to: to.toISOString(),
});

/** A sanitization record contains only the newest task of each type, because the newest task repeats the work of earlier tasks. */
export async function turnoverOf(tx: Tx, context: TurnoverContext): Promise<Turnover> {
  const { node, decommission, tenancy, workflowId, state } = context;
  const newest = await newestOfEachType(tx, { nodeId: node.id, workflowId }, RECORDED);
  // A task that the hub never delivered did nothing on the host, and no agent can confirm the task.
  const unread = state.disks_unread === node.generation;
  const tasks = newest.filter(
    (task) => task.epoch > 0 && ranOnThisSystem(context, task) && !(unread && task.type === "node.sample_disks"),
  );
  const memory = await memoryOf(tx, context, tasks);
  const sampled = tasks.find(({ type }) => type === "node.sample_disks");
  const check =
    sampled === undefined ? null : await readDiskCheck(tx, context.input.erase, state.disks_before, sampled);
  const requestedBy = (await readWorkflow(tx, workflowId))?.requestedBy ?? "unknown";
  return {
    nodeId: node.id,
    startedAt: decommission.createdAt,
    tasks,
    unconfirmed: state.unconfirmed_tasks ?? [],
    allocation: tenancy === null ? null : allocationOf(tenancy, decommission.createdAt),
    operation: {
      decommission_id: workflowId,
      mode: decommission.mode,
      reason: decommission.reason,
      requested_by: requestedBy,
    },
    trust: trustOf(context),
    release: decommission.mode === "reimage" ? releaseOf(context, check) : undefined,
    disk_samples: check?.samples ?? [],
    required: requirementsOf(context),
    ...(await refusedOf(tx, context, tasks)),
    residue: await residueOf(tx, context, tasks),
    gpus: memory === null ? [] : [...memory.gpus],
    statements: [
      ...(memory?.statements ?? []),
      ...(check === null ? [] : [diskStatement(check)]),
      ...(unread ? [unreadStatement((state.disks_unread_by ?? "unknown").slice(0, 256))] : []),
    ],
    unsigned_reason: null,
  };
}
