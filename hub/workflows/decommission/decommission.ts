import type { EventData, EventType } from "../../../shared/events.ts";
import type { Evidence } from "../../../shared/failures.ts";
import type { NodeId } from "../../../shared/ids.ts";
import {
  type DecommissionMode,
  type DecommissionStage,
  STAGES_OF_MODE,
  type WorkflowStatus,
} from "../../../shared/workflow-status.ts";
import { admitDecommissions } from "../../db/queries/admission.ts";
import { lockOpenAllocation } from "../../db/queries/allocations.ts";
import { generationReleasedBy, readDecommissionRows } from "../../db/queries/decommissions.ts";
import { recordDomainEvent } from "../../db/queries/domain-events.ts";
import { isAccountLost } from "../../db/queries/reinstalls.ts";
import { hasTaskOf } from "../../db/queries/task-reads.ts";
import { isTerminal } from "../../db/queries/workflows.ts";
import type { Node, NodeDecommission, Workflow as WorkflowRow } from "../../db/schema/index.ts";
import type { Tx } from "../../db/tx.ts";
import { orderFirstBaseline } from "../../node/baseline.ts";
import {
  deleteNode,
  leaveCleaning,
  leaveDraining,
  leaveReimage,
  leaveRemoving,
  quarantineUnclean,
} from "../../node/lifecycle.ts";
import { ending } from "../engine/ending.ts";
import { defineWorkflow, type Workflow, type WorkflowHooks } from "../engine/workflow.ts";
import { cancelWork } from "./agent-work.ts";
import { CLEANING_TASKS } from "./cleaning-tasks.ts";
import {
  buildDecommissionContext,
  type DecommissionContext,
  DecommissionInput,
  type DecommissionServices,
  type DecommissionStages,
  DecommissionState,
  FORGOTTEN_POWER_CYCLES,
} from "./decommission-context.ts";
import { undoDrain } from "./drain-work.ts";
import { endTenancy, leaveTenancy } from "./end-tenancy.ts";
import { AFTER_CANCEL, deploysAnew, KEEPS_STATUS } from "./keeps-status.ts";
import { fullFacts, lastSeen, leftBy } from "./left-by-full.ts";
import { observedMachine } from "./release-machine.ts";
import { checkHardware } from "./stages/check-hardware.ts";
import { chooseSecrets } from "./stages/choose-secrets.ts";
import { cleanupSecrets } from "./stages/cleanup-secrets.ts";
import { cleanupStorage } from "./stages/cleanup-storage.ts";
import { disableNode } from "./stages/disable-node.ts";
import { drainNode } from "./stages/drain-node.ts";
import { enableNode } from "./stages/enable-node.ts";
import { forceReleaseAllocations } from "./stages/force-release-allocations.ts";
import { overwriteGpuMemory } from "./stages/overwrite-gpu-memory.ts";
import { powerCycleMaasNode, rerunAtPowerCycle } from "./stages/power-cycle-maas-node.ts";
import { powerOffMaasNode } from "./stages/power-off-maas-node.ts";
import { recordSanitization } from "./stages/record-sanitization.ts";
import { releaseMaasNode } from "./stages/release-maas-node.ts";
import { removeGpuaasNodeRecord } from "./stages/remove-gpuaas-node-record.ts";
import { removeMaasRecord } from "./stages/remove-maas-record.ts";
import { retireGpuaasNode } from "./stages/retire-gpuaas-node.ts";
import { revokeUsers } from "./stages/revoke-users.ts";
import { scrubGpu } from "./stages/scrub-gpu.ts";
import { validateCleanNode } from "./stages/validate-clean-node.ts";
import { UNINSTALL } from "./uninstall-work.ts";

/**
 * Each mode of a decommission is a workflow kind of its own, with the stages of state model 5.2. The workflow kinds `reimage` and `reinstall` have
 * folders of their own, because they also deploy the host.
 */
const MODES: {
  readonly [Mode in Exclude<DecommissionMode, "reimage" | "reinstall">]: DecommissionStages<
    (typeof STAGES_OF_MODE)[Mode]
  >;
} = {
  drain: [disableNode, drainNode, retireGpuaasNode],
  release: [releaseMaasNode, powerOffMaasNode],
  remove: [removeGpuaasNodeRecord],
  soft_reset: [
    disableNode,
    drainNode,
    revokeUsers,
    cleanupStorage,
    scrubGpu,
    powerCycleMaasNode,
    overwriteGpuMemory,
    validateCleanNode,
    recordSanitization,
    checkHardware,
    enableNode,
  ],
  storage_cleanup: [disableNode, drainNode, cleanupStorage, validateCleanNode, enableNode],
  full_decommission: [
    disableNode,
    forceReleaseAllocations,
    drainNode,
    revokeUsers,
    cleanupStorage,
    recordSanitization,
    retireGpuaasNode,
    chooseSecrets,
    releaseMaasNode,
    powerOffMaasNode,
    removeGpuaasNodeRecord,
    cleanupSecrets,
    removeMaasRecord,
  ],
};

export const firstStageOf = (mode: DecommissionMode): DecommissionStage => STAGES_OF_MODE[mode][0];

export const decommissionWorkflows = (services: DecommissionServices): readonly Workflow[] =>
  (Object.keys(MODES) as (keyof typeof MODES)[]).map((mode) => decommissionWorkflow(services, mode));

const decommissionWorkflow = (services: DecommissionServices, mode: keyof typeof MODES): Workflow =>
  defineWorkflow({
    kind: mode,
    stages: MODES[mode],
    input: DecommissionInput,
    state: DecommissionState.partial(),
    renamed: {},
    rerunPoint: rerunAtPowerCycle,
    buildContext: (run) => buildDecommissionContext(services, run),
    observedEvidence: evidenceOf,
    forgottenOnRecovery: ["power_off_asked", "records_written", ...FORGOTTEN_POWER_CYCLES],
    hooks: decommissionHooks(mode),
    admit: (tx) => admitDecommissions(tx, mode),
  });

/** The evidence of a decommission's failure shows the machine as MAAS showed it last, and what a full decommission would leave behind now. */
async function evidenceOf(context: DecommissionContext): Promise<Evidence> {
  const machine = await observedMachine(context);
  if (context.decommission.mode !== "full_decommission") return machine;
  const left = leftBy(fullFacts(context, await lastSeen(context.services.db, context.decommission)));
  if (left.length === 0) return machine;
  return { ...machine, left: left.map(({ what, todo }) => `${what} ${todo}`.trim().slice(0, 512)) };
}

/** The hooks of every decommission mode record the decommission's events and set the node's status after its end. */
export const decommissionHooks = (mode: DecommissionMode) =>
  ({
    onStarted: async (tx, row) =>
      recordDomainEvent(tx, { type: "node.decommission.started", ...about(row), data: nodeOf(row, mode) }),
    onEnded: async (tx, row, end) => {
      const { status } = end;
      const rows = await readDecommissionRows(tx, row.id);
      if (rows !== null) await settleNode(tx, row, status, rows);
      if (!isEnding(status)) return;
      const data = { ...nodeOf(row, mode), ...ending(row, end) };
      await recordDomainEvent(tx, { type: EVENTS[status], ...about(row), data });
    },
  }) satisfies WorkflowHooks;

/**
 * Gives the node of a decommission that did not complete a status in which somebody is responsible for the node (decision N3). After a failed drain
 * the node stays `draining`, and an operator can resume or cancel the drain. After a failed remove the node is `retired` again (lifecycle 5.8). If
 * the hub has accepted the agent's report of its own uninstall, an operator can only resume the failed decommission of the mode `remove`. A cancelled
 * decommission restores the node's status, even if the cancel came before any stage could compensate.
 */
async function settleNode(
  tx: Tx,
  row: WorkflowRow,
  status: WorkflowStatus,
  { decommission, node }: { decommission: NodeDecommission; node: Node },
): Promise<void> {
  if (status === "completed" || status === "reconciled") {
    if (decommission.mode === "full_decommission") return endTenancy(tx, node.id, row.id, row.kind);
    if (!KEEPS_STATUS[decommission.mode]) return;
    await endTenancy(tx, node.id, row.id, row.kind);
    return orderFirstBaseline(tx, node.id);
  }
  const { nodeId } = decommission;
  if (isTerminal(status)) {
    await undoDrain(tx, row.id, decommission, "The drain was given up");
    await leaveDraining(tx, nodeId, row.id, decommission.priorStatus, "The operation was cancelled");
    if (decommission.mode === "full_decommission") await leaveFull(tx, row, nodeId);
    const { mode } = decommission;
    if (deploysAnew(mode)) await leaveReimage(tx, nodeId, `The ${mode} was cancelled`, AFTER_CANCEL[mode]);
    if (KEEPS_STATUS[decommission.mode])
      await leaveCleaning(
        tx,
        nodeId,
        await isCleaningBegun(tx, row, { decommission, node }),
        `The ${row.kind} was cancelled`,
        mode === "reinstall" ? "the tenant has no account on its host" : "it is not known whether the host is clean",
      );
  }
  if (node.status !== "removing") return;
  const uninstall = await cancelWork(tx, { nodeId, workflowId: row.id }, UNINSTALL);
  if (uninstall?.state !== "succeeded") {
    await leaveRemoving(tx, nodeId, row.id, "The remove did not succeed; the node's identity is kept");
  } else if (isTerminal(status)) {
    await deleteNode(tx, nodeId, row.id, "Its agent was uninstalled");
  }
}

/**
 * True if nobody knows after a cancelled decommission whether the host is clean. A reimage has begun to clean the host when MAAS has released the
 * machine, because a new system alone does not clean the GPUs. A reinstall cleans nothing; after a cancelled reinstall, `isCleaningBegun` is true if
 * the tenant has no account on the host's system.
 */
async function isCleaningBegun(
  tx: Tx,
  row: WorkflowRow,
  { decommission, node }: { decommission: NodeDecommission; node: Node },
): Promise<boolean> {
  const { mode, nodeId } = decommission;
  if (mode === "reinstall") return node.status !== "enrolling" && (await hasLostTenant(tx, nodeId));
  const isReleased = generationReleasedBy(decommission) !== null && node.status !== "enrolling";
  if (mode === "reimage" && isReleased) return true;
  return hasTaskOf(tx, { nodeId, workflowId: row.id }, CLEANING_TASKS);
}

/** True if a reinstall has taken the tenant's system away, and the tenant has no account on a new system. */
async function hasLostTenant(tx: Tx, nodeId: NodeId): Promise<boolean> {
  const allocation = await lockOpenAllocation(tx, nodeId);
  return allocation !== null && isAccountLost(allocation);
}

/**
 * If the agent began to clean the host before a full decommission was cancelled, the hub quarantines a node that is in service. After the cancel of a
 * full decommission, the hub's periodic work on allocations begins the cleaning of the node between tenants, because the tenant's use of the node is
 * over.
 */
async function leaveFull(tx: Tx, { id, kind }: WorkflowRow, nodeId: NodeId): Promise<void> {
  if (await hasTaskOf(tx, { nodeId, workflowId: id }, CLEANING_TASKS))
    await quarantineUnclean(tx, nodeId, `The ${kind} was cancelled, so it is not known whether the host is clean`);
  await leaveTenancy(tx, nodeId, id);
}

const EVENTS = {
  completed: "node.decommission.completed",
  reconciled: "node.decommission.completed",
  cancelled: "node.decommission.cancelled",
  failed_retryable: "node.decommission.failed",
  failed_manual_intervention: "node.decommission.manual_intervention_required",
} as const satisfies Partial<Record<WorkflowStatus, EventType>>;

const isEnding = (status: WorkflowStatus): status is keyof typeof EVENTS => status in EVENTS;

const about = (row: WorkflowRow) => ({ subject: `decommissions/${row.id}` });

function nodeOf(row: WorkflowRow, mode: DecommissionMode): EventData<"node.decommission.started"> {
  const input = DecommissionInput.safeParse(row.input);
  const node = input.success ? { node_id: input.data.node_id } : {};
  return { decommission_id: row.id, batch_id: row.batchId, mode, site_id: row.siteId, ...node };
}
