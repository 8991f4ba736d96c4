import type { ProvisioningStage, STAGES_OF_MODE } from "../../../shared/workflow-status.ts";
import { admitDecommissions } from "../../db/queries/admission.ts";
import { releaseDeploySlot } from "../../db/queries/deploy-slots.ts";
import { decommissionHooks } from "../decommission/decommission.ts";
import { DecommissionInput, FORGOTTEN_POWER_CYCLES } from "../decommission/decommission-context.ts";
import { observedMachine } from "../decommission/release-machine.ts";
import { checkDisks } from "../decommission/stages/check-disks.ts";
import { checkHardware } from "../decommission/stages/check-hardware.ts";
import { disableNode } from "../decommission/stages/disable-node.ts";
import { drainNode } from "../decommission/stages/drain-node.ts";
import { enableNode } from "../decommission/stages/enable-node.ts";
import { overwriteGpuMemory } from "../decommission/stages/overwrite-gpu-memory.ts";
import { powerCycleMaasNode, rerunAtPowerCycle } from "../decommission/stages/power-cycle-maas-node.ts";
import { powerOffMaasNode } from "../decommission/stages/power-off-maas-node.ts";
import { readDisks } from "../decommission/stages/read-disks.ts";
import { recordSanitization } from "../decommission/stages/record-sanitization.ts";
import { releaseMaasNode } from "../decommission/stages/release-maas-node.ts";
import { scrubGpu } from "../decommission/stages/scrub-gpu.ts";
import { takeBaseline } from "../decommission/stages/take-baseline.ts";
import { validateCleanNode } from "../decommission/stages/validate-clean-node.ts";
import { defineWorkflow, type Workflow } from "../engine/workflow.ts";
import type { ProvisionStage } from "../provisioning/context.ts";
import { PROVISION_COUNTERS, PROVISION_RESTART, PROVISION_STAGES } from "../provisioning/provisioning.ts";
import type { WorkflowServices } from "../services.ts";
import {
  buildReimageContext,
  type ReimageContext,
  type ReimageStage,
  type ReimageStages,
  ReimageState,
} from "./context.ts";
import { loadSiteConfig } from "./stages/load-site-config.ts";

type ReimageStageName = (typeof STAGES_OF_MODE)["reimage"][number];

/**
 * Adapts the compensation of a provisioning stage to a reimage. Before the reimage has rendered a first boot, its provisioning stages have nothing to
 * undo, and the old system's certificates stay valid. If an operator cancels the reimage after the node is in service, the compensation does not undo
 * the deploy.
 */
const provisioning = <Name extends ProvisioningStage>(stage: ProvisionStage<Name>): ReimageStage<Name> => {
  const undo = stage.compensate;
  if (undo === undefined) return stage;
  return {
    ...stage,
    compensate: async (context, cause) =>
      context.node.status === "enrolling" && typeof context.state.generation === "number"
        ? undo(context, cause)
        : { kind: "skipped", message: `The node is ${context.node.status}, so nothing was provisioned that is undone` },
  };
};

/**
 * The stages that deploy the host anew. `PROVISION_STAGES.map` keeps the number, order and names of the stages, although the type of its result does
 * not say so.
 */
export const DEPLOY_STAGES = PROVISION_STAGES.map((stage) =>
  provisioning(stage as ProvisionStage),
) as unknown as typeof PROVISION_STAGES;

/**
 * A reimage takes the host out of use, releases its machine and deploys the machine anew (lifecycle 5.3). After the deploy, the new system's agent
 * cleans the GPUs and signs the sanitization record, and the node returns to service.
 */
const REIMAGE_STAGES: ReimageStages<(typeof STAGES_OF_MODE)["reimage"]> = [
  disableNode,
  drainNode,
  loadSiteConfig,
  readDisks,
  releaseMaasNode,
  powerOffMaasNode,
  ...DEPLOY_STAGES,
  takeBaseline,
  checkDisks,
  scrubGpu,
  powerCycleMaasNode,
  overwriteGpuMemory,
  validateCleanNode,
  recordSanitization,
  checkHardware,
  enableNode,
];

/**
 * If a stage that configures the released machine fails, `resume` begins at the preflight, and the release stage accepts the machine that is already
 * Ready.
 */
export const RESUME_DEPLOY = {
  configure_storage: "load_site_config",
  apply_roce_phase2: "load_site_config",
  ensure_pxe_interface_auto: "load_site_config",
  render_cloud_init: "load_site_config",
  ...PROVISION_RESTART.resume,
} as const;

/** Maps a failed stage to the stage at which `resume` begins. */
const RESUME_AT: Readonly<Record<ReimageStageName, ReimageStageName>> = {
  disable_node: "disable_node",
  drain_node: "drain_node",
  load_site_config: "load_site_config",
  read_disks: "read_disks",
  release_maas_node: "release_maas_node",
  power_off_maas_node: "power_off_maas_node",
  ...RESUME_DEPLOY,
  take_baseline: "take_baseline",
  check_disks: "check_disks",
  scrub_gpu: "scrub_gpu",
  power_cycle_maas_node: "power_cycle_maas_node",
  overwrite_gpu_memory: "overwrite_gpu_memory",
  validate_clean_node: "validate_clean_node",
  record_sanitization: "record_sanitization",
  check_hardware: "check_hardware",
  enable_node: "enable_node",
};

export function reimageWorkflow(services: WorkflowServices): Workflow {
  const restart: Readonly<Record<"retry" | "resume", Readonly<Partial<Record<string, ReimageStageName>>>>> = {
    retry: PROVISION_RESTART.retry,
    resume: RESUME_AT,
  };
  const hooks = decommissionHooks("reimage");
  return defineWorkflow<ReimageContext, DecommissionInput, ReimageState>({
    kind: "reimage",
    stages: REIMAGE_STAGES,
    input: DecommissionInput,
    state: ReimageState.partial(),
    renamed: {},
    rerunPoint: rerunAtPowerCycle,
    buildContext: (run) => buildReimageContext(services, run, "reimage"),
    observedEvidence: observedMachine,
    hooks: {
      ...hooks,
      onEnded: async (tx, row, end) => {
        await releaseDeploySlot(tx, row.id);
        await hooks.onEnded(tx, row, end);
      },
    },
    restartPoint: (verb, stage) => restart[verb][stage] ?? stage,
    forgottenOnRerun: ["deploy_failure"],
    forgottenOnRecovery: [...PROVISION_COUNTERS, "power_off_asked", "records_written", ...FORGOTTEN_POWER_CYCLES],
    admit: (tx) => admitDecommissions(tx, "reimage"),
  });
}
