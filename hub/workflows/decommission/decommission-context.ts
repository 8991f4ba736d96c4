import { z } from "zod";
import { failure } from "../../../shared/failures.ts";
import { AllocationId, NodeId, TaskId } from "../../../shared/ids.ts";
import { DisksBefore, MOST_COMPARED_DISKS } from "../../../shared/tasks/sample-disks.ts";
import type { DecommissionStage } from "../../../shared/workflow-status.ts";
import { readOpenSession } from "../../db/queries/agent-sessions.ts";
import { type DecommissionRows, readDecommissionRows } from "../../db/queries/decommissions.ts";
import { readTenancy, type Tenancy } from "../../db/queries/tenancies.ts";
import type { AgentSession } from "../../db/schema/index.ts";
import type { Stage, StageRun, StagesOf } from "../engine/stage.ts";
import type { WorkflowServices } from "../services.ts";
import { StageFailure } from "../stage-failure.ts";

export type DecommissionServices = Pick<
  WorkflowServices,
  "db" | "inTx" | "log" | "maas" | "secrets" | "countersign" | "checkAnswers"
>;

/** Options of a decommission have defaults, because not every mode sets them, and rows of older versions may lack them (decision W3). */
export const DecommissionInput = z.object({
  node_id: NodeId,
  deadline_seconds: z.number().default(0),
  agent_wait_seconds: z.number().default(0),
  force: z.boolean().default(false),
  storage_cleanup: z.enum(["none", "local", "weka", "all"]).default("none"),
  /** Serial numbers of data disks that the request asks to purge, besides the disks that the profile lists. */
  purge_disks: z.array(z.string()).default([]),
  erase: z.enum(["none", "quick", "secure"]).default("none"),
  remove_maas_record: z.boolean().default(false),
  force_release_allocation: z.boolean().default(false),
  /** The allocation of the instance that a reinstall gives back; null in every other mode. */
  allocation_id: AllocationId.nullable().default(null),
});
export type DecommissionInput = z.output<typeof DecommissionInput>;

/** The power cycle that GPUs need, which `scrub_gpu` asks for and `power_cycle_maas_node` carries out. */
const GpuPowerCycle = z.object({
  /** The host's boot id before the power cycle. */
  boot_id: z.string(),
  /** The time when the BMC first reported the machine as off; null before that. */
  off_since: z.string().nullable(),
});

/**
 * The hub's conclusions from the host's answers about GPU memory, for the sanitization record. The evidence about GPU memory that is not in
 * `GpuMemoryCheck` is in the rows of the agent's tasks.
 */
const GpuMemoryCheck = z.object({
  fill_task_id: TaskId,
  /**
   * The task that asked the agent for the contents of the GPU memory (the challenge), or the fill task if the kernel's driver cleared all memory and
   * the hub sent no challenge.
   */
  challenge_task_id: TaskId,
  checked: z.array(z.object({ uuid: z.string(), asked: z.number(), correct: z.number() })),
  agent_version: z.string(),
  boot_id: z.string(),
});
export type GpuMemoryCheck = z.output<typeof GpuMemoryCheck>;

export const DecommissionState = z.object({
  /** The agent's task whose failure a stage reported last; the stage's next attempt queues another task. */
  failed_task_id: TaskId.nullable().optional(),
  /**
   * Tasks of the operation whose results are missing in the agent's journal. The next sanitization record lists a task whose result is missing in the
   * agent's journal as unconfirmed.
   */
  unconfirmed_tasks: z.array(TaskId).nullable().optional(),
  gpu_power_cycle: GpuPowerCycle.nullable().optional(),
  /** The last power command of the GPUs' power cycle that MAAS has accepted. */
  gpu_power_asked: z.enum(["off", "on"]).nullable().optional(),
  /** How many power cycles for GPUs the operation has had since a person last continued the operation. */
  gpu_power_cycles: z.number().nullable().optional(),
  gpu_memory: GpuMemoryCheck.nullable().optional(),
  /** How often the hub rewrote the cleaning's sanitization record since a person last continued the operation. */
  records_written: z.number().nullable().optional(),
  /** The time when a reimage saw its new system deployed. An agent's task from before `deployed_at` ran on the host's earlier system. */
  deployed_at: z.string().nullable().optional(),
  /** The node's generation for which `release_maas_node` may have asked MAAS for a release. */
  release_intent: z.number().nullable().optional(),
  /** True after the stage `release_maas_node` has reported a failed release, so that its next attempt asks MAAS for another release. */
  release_failure_told: z.boolean().nullable().optional(),
  /** The node's generation whose machine the hub saw free after the release, with evidence of the requested disk erase. */
  machine_free: z.number().nullable().optional(),
  /** The node's generation for which MAAS's events showed the end of the requested disk erase. */
  erase_reported: z.number().nullable().optional(),
  /** How many disks MAAS's release script named when `erase_reported` was set. */
  erase_disks: z.number().nullable().optional(),
  /** The node's generation for which a person decided, after the failure `erase_unproven`, to continue without evidence of a disk erase. */
  erase_waived: z.number().nullable().optional(),
  erase_waived_by: z.string().nullable().optional(),
  /** True after MAAS has accepted the command to power the machine off, so that the stage `power_off_maas_node` does not repeat the command. */
  power_off_asked: z.boolean().nullable().optional(),
  /** The facts that the hub has read about the disks before the release of a reimage. */
  disks_before: DisksBefore.nullable().optional(),
  /** The node's generation for which a person decided to continue although findings speak against the erase of the disks, and the person's name. */
  disks_waived: z.number().nullable().optional(),
  /** The findings against the erase of the disks at the last failure of the stage `check_disks`. */
  disks_found: z.array(z.string()).max(MOST_COMPARED_DISKS).nullable().optional(),
  disks_waived_by: z.string().nullable().optional(),
  /**
   * The node's generation whose agent cannot read the disks and for which a person decided to continue without the comparison, and the person's name.
   */
  disks_unread: z.number().nullable().optional(),
  disks_unread_by: z.string().nullable().optional(),
  /** The node's generation after whose release the BMC reported the machine's power as off. */
  seen_off: z.number().nullable().optional(),
  power_state: z.string().nullable().optional(),
});
export type DecommissionState = z.output<typeof DecommissionState>;

/** After a person has looked at a failed operation, the hub may ask MAAS for the power commands again, and for another power cycle. */
export const FORGOTTEN_POWER_CYCLES = [
  "gpu_power_asked",
  "gpu_power_cycles",
] as const satisfies readonly (keyof DecommissionState)[];

export interface DecommissionContext extends StageRun<DecommissionInput, DecommissionState>, DecommissionRows {
  readonly services: DecommissionServices;
  /** The tenant's use of the node that the decommission ends; null if the node had no tenant. */
  readonly tenancy: Tenancy | null;
  readonly session: AgentSession | null;
}
export type DecommissionStageOf<Name extends DecommissionStage = DecommissionStage> = Stage<
  DecommissionContext,
  DecommissionState,
  Name
>;
export type DecommissionStages<Names extends readonly DecommissionStage[]> = StagesOf<
  Names,
  DecommissionContext,
  DecommissionState
>;

export async function buildDecommissionContext(
  services: DecommissionServices,
  run: StageRun<DecommissionInput, DecommissionState>,
): Promise<DecommissionContext> {
  const rows = await readDecommissionRows(services.db, run.workflowId);
  if (rows === null) {
    const message = `The node of decommission ${run.workflowId} has no record. Cancel the decommission.`;
    throw new StageFailure(failure("state_ambiguity", "node_state_conflict", message));
  }
  const session = await readOpenSession(services.db, rows.node.id, rows.node.generation);
  const tenancy = await readTenancy(services.db, rows.node.id, run.workflowId);
  return { ...run, ...rows, session, tenancy, services };
}

/** Stages that write only the hub's database get three attempts (lifecycle 5.8). */
export const RECORD_RETRY = { maxAttempts: 3, baseSeconds: 1, maxSeconds: 10 } as const;

/** A stage that writes only the node's record exceeds its timeout only if the hub cannot write to the database at all. */
export const recordTimeout = (what: string): DecommissionStageOf["timeout"] => ({
  seconds: () => 300,
  failure: (context) =>
    failure(
      "upstream_transient",
      "hub_internal_error",
      `${what} of ${context.node.hostname} could not be written to the hub's database.`,
      {
        node_id: context.node.id,
        node_status: context.node.status,
      },
    ),
});

export const stateConflict = (context: DecommissionContext, actual: string | null, wanted: string) =>
  failure(
    "state_ambiguity",
    "node_state_conflict",
    `Node ${context.node.hostname} is ${actual ?? "gone"}, so it cannot be ${wanted}. Bring the node to a status that allows this and rerun, or cancel.`,
    { node_id: context.node.id, node_status: actual },
  );
