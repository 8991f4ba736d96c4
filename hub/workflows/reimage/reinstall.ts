import type { STAGES_OF_MODE } from "../../../shared/workflow-status.ts";
import { admitDecommissions } from "../../db/queries/admission.ts";
import { releaseDeploySlot } from "../../db/queries/deploy-slots.ts";
import { decommissionHooks } from "../decommission/decommission.ts";
import { DecommissionInput } from "../decommission/decommission-context.ts";
import { observedMachine } from "../decommission/release-machine.ts";
import { checkHardware } from "../decommission/stages/check-hardware.ts";
import { disableNode } from "../decommission/stages/disable-node.ts";
import { enableNode } from "../decommission/stages/enable-node.ts";
import { powerOffMaasNode } from "../decommission/stages/power-off-maas-node.ts";
import { releaseMaasNode } from "../decommission/stages/release-maas-node.ts";
import { restoreTenant } from "../decommission/stages/restore-tenant.ts";
import { takeBaseline } from "../decommission/stages/take-baseline.ts";
import { defineWorkflow, type Workflow } from "../engine/workflow.ts";
import { PROVISION_COUNTERS, PROVISION_RESTART } from "../provisioning/provisioning.ts";
import type { WorkflowServices } from "../services.ts";
import { buildReimageContext, type ReimageContext, type ReimageStages, ReimageState } from "./context.ts";
import { DEPLOY_STAGES, RESUME_DEPLOY } from "./reimage.ts";
import { loadSiteConfig } from "./stages/load-site-config.ts";

type Names = (typeof STAGES_OF_MODE)["reinstall"];
type StageName = Names[number];

/**
 * A reinstall gives the host of an instance a new system, and gives the instance back to its tenant (decision N11). A reinstall asks nothing of the
 * old system's agent, because a tenant also orders a reinstall for a host that hangs. A reinstall erases no disk and cleans nothing, so it writes no
 * sanitization record.
 */
const REINSTALL_STAGES: ReimageStages<Names> = [
  disableNode,
  loadSiteConfig,
  releaseMaasNode,
  powerOffMaasNode,
  ...DEPLOY_STAGES,
  takeBaseline,
  checkHardware,
  restoreTenant,
  enableNode,
];

/** Maps a failed stage to the stage at which `resume` begins. */
const RESUME_AT: Readonly<Record<StageName, StageName>> = {
  disable_node: "disable_node",
  load_site_config: "load_site_config",
  release_maas_node: "release_maas_node",
  power_off_maas_node: "power_off_maas_node",
  ...RESUME_DEPLOY,
  take_baseline: "take_baseline",
  check_hardware: "check_hardware",
  restore_tenant: "restore_tenant",
  enable_node: "enable_node",
};

export function reinstallWorkflow(services: WorkflowServices): Workflow {
  const restart: Readonly<Record<"retry" | "resume", Readonly<Partial<Record<string, StageName>>>>> = {
    retry: PROVISION_RESTART.retry,
    resume: RESUME_AT,
  };
  const hooks = decommissionHooks("reinstall");
  return defineWorkflow<ReimageContext, DecommissionInput, ReimageState>({
    kind: "reinstall",
    stages: REINSTALL_STAGES,
    input: DecommissionInput,
    state: ReimageState.partial(),
    renamed: {},
    buildContext: (run) => buildReimageContext(services, run, "reinstall"),
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
    forgottenOnRecovery: [...PROVISION_COUNTERS, "power_off_asked"],
    admit: (tx) => admitDecommissions(tx, "reinstall"),
  });
}
