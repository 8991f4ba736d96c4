import { compareResidue } from "../../../shared/residue/compare.ts";
import { ResidueSnapshot } from "../../../shared/residue/snapshot.ts";
import type { Requirement } from "../../../shared/sanitization-record.ts";
import { recordResidue } from "../../../shared/sanitization-residue.ts";
import { TASKS } from "../../../shared/tasks/index.ts";
import { readBaseline } from "../../db/queries/node-baselines.ts";
import { newestOfEachType } from "../../db/queries/task-reads.ts";
import { readWorkflow } from "../../db/queries/workflows.ts";
import type { Task } from "../../db/schema/index.ts";
import type { Tx } from "../../db/tx.ts";
import type { HostMemory } from "../../gpu-memory/host-memory.ts";
import { RESET_STEPS } from "../../node/gpu-reset-verdict.ts";
import type { Turnover } from "../../node/prepare-record.ts";
import type { DecommissionContext } from "./decommission-context.ts";
import { hostMemoryOf, needsOverwrite } from "./gpu-memory.ts";
import { tenantOf } from "./tenant.ts";

/** The types of tasks whose results a turnover's sanitization record lists. */
const RECORDED = [
  "node.drain",
  "allocation.revoke_user",
  "node.storage_cleanup",
  "node.gpu_scrub",
  "node.gpu_fill",
  "node.gpu_challenge",
  "node.validate_clean",
] as const;

/**
 * The steps that must have succeeded for a clean host: those of the stages that had something to clean. A requirement with `step` null means that a
 * clean host needs all steps of the task to have succeeded.
 */
function requirementsOf(context: DecommissionContext): Requirement[] {
  const { tenancy, input, node } = context;
  const overwriting = needsOverwrite(context) ? ["node.gpu_fill", "node.gpu_challenge"] : [];
  return [
    ...(tenancy === null ? [] : [{ type: "allocation.revoke_user", step: null }]),
    ...(input.storage_cleanup === "none" ? [] : [{ type: "node.storage_cleanup", step: null }]),
    ...(node.gpusTotal === 0 ? [] : RESET_STEPS.map((step) => ({ type: "node.gpu_scrub", step }))),
    ...overwriting.map((type) => ({ type, step: null })),
  ];
}

/** The comparison of the host's newest snapshot with the node's baseline, or null if no task took a snapshot of the host. */
async function residueOf(tx: Tx, context: DecommissionContext, tasks: readonly Task[]): Promise<Turnover["residue"]> {
  const task = tasks.find(({ type, state }) => type === "node.validate_clean" && state === "succeeded");
  const result = TASKS["node.validate_clean"].result.safeParse(task?.result);
  if (!result.success) return null;
  const { node } = context;
  const known = ResidueSnapshot.safeParse((await readBaseline(tx, node.id, node.generation))?.baseline.snapshot);
  const judgement = compareResidue(known.success ? known.data : null, result.data.snapshot, tenantOf(context));
  return recordResidue(judgement, known.success);
}

/** What the sanitization record says about the memory of each GPU, or null for a node without GPUs. */
function memoryOf(context: DecommissionContext, tasks: readonly Task[]): HostMemory | null {
  if (context.node.gpusTotal === 0) return null;
  const newest = (type: Task["type"]): Task | null => tasks.find((task) => task.type === type) ?? null;
  const [scrub, fill] = [newest("node.gpu_scrub"), newest("node.gpu_fill")];
  return hostMemoryOf(
    context,
    { scrub, fill, challenge: newest("node.gpu_challenge") },
    context.state.gpu_memory ?? null,
  );
}

/**
 * The facts of a turnover for its sanitization record (architecture 14.5). Of each type of task, the record contains only the newest task, because
 * the newest task repeats the work of earlier tasks.
 */
export async function turnoverOf(tx: Tx, context: DecommissionContext): Promise<Turnover> {
  const { node, decommission, tenancy, workflowId, state } = context;
  const tasks = await newestOfEachType(tx, { nodeId: node.id, workflowId }, RECORDED);
  const memory = memoryOf(context, tasks);
  const requestedBy = (await readWorkflow(tx, workflowId))?.requestedBy ?? "unknown";
  return {
    nodeId: node.id,
    startedAt: decommission.createdAt,
    tasks,
    unconfirmed: state.unconfirmed_tasks ?? [],
    allocation:
      tenancy === null
        ? null
        : {
            id: tenancy.allocationId,
            tenant: tenancy.tenant,
            login_user: tenancy.loginUser,
            granted_root: tenancy.hadRoot,
            from: tenancy.activeAt?.toISOString() ?? null,
            to: decommission.createdAt.toISOString(),
          },
    operation: {
      decommission_id: workflowId,
      mode: decommission.mode,
      reason: decommission.reason,
      requested_by: requestedBy,
    },
    trust: "in_place",
    required: requirementsOf(context),
    residue: await residueOf(tx, context, tasks),
    gpus: memory === null ? [] : [...memory.gpus],
    statements: memory === null ? [] : memory.statements,
    unsigned_reason: null,
  };
}
