import type { PROVISIONING_STAGES, ProvisioningStage } from "../../../shared/workflow-status.ts";
import type { ProvisionStages } from "./context.ts";
import type { ProvisionState } from "./provision-state.ts";
import { applyRocePhase2 } from "./stages/apply-roce-phase2.ts";
import { classifyDeployFailure } from "./stages/classify-deploy-failure.ts";
import { configureStorage } from "./stages/configure-storage.ts";
import { deployViaMaas } from "./stages/deploy-via-maas.ts";
import { ensureHardwareSyncConfigured } from "./stages/ensure-hardware-sync-configured.ts";
import { ensurePxeInterfaceAuto } from "./stages/ensure-pxe-interface-auto.ts";
import { recoverForDatasourceRetry } from "./stages/recover-for-datasource-retry.ts";
import { renderCloudInit } from "./stages/render-cloud-init.ts";
import { waitForAgentEnrollment } from "./stages/wait-for-agent-enrollment.ts";
import { waitForDeployed } from "./stages/wait-for-deployed.ts";
import { waitForHardwareSyncHealthy } from "./stages/wait-for-hardware-sync-healthy.ts";

/**
 * The stages that lead from a Ready machine to an active node, one stage for each name in `PROVISIONING_STAGES`. Each workflow that deploys a machine
 * has all provisioning stages, in the order of `PROVISION_STAGES`.
 */
export const PROVISION_STAGES: ProvisionStages<typeof PROVISIONING_STAGES> = [
  configureStorage,
  applyRocePhase2,
  ensurePxeInterfaceAuto,
  renderCloudInit,
  deployViaMaas,
  waitForDeployed,
  classifyDeployFailure,
  recoverForDatasourceRetry,
  ensureHardwareSyncConfigured,
  waitForHardwareSyncHealthy,
  waitForAgentEnrollment,
];

/**
 * Maps a failed stage to the stage at which an operator's `retry` or `resume` begins. If the map for `retry` does not name the failed stage, `retry`
 * begins at the failed stage itself. The map for `resume` names no stage up to `render_cloud_init`, because each kind of workflow decides itself
 * where `resume` begins after the failure of an early stage (lifecycle 4.9).
 */
export const PROVISION_RESTART = {
  // A `retry` after a failed deploy begins at `render_cloud_init`, because the hub has released the machine to Ready. A `retry` that began at
  // `wait_for_deployed` would wait for ever, because nobody would deploy the released machine.
  retry: {
    deploy_via_maas: "render_cloud_init",
    wait_for_deployed: "render_cloud_init",
    classify_deploy_failure: "render_cloud_init",
    recover_for_datasource_retry: "render_cloud_init",
  },
  resume: {
    deploy_via_maas: "render_cloud_init",
    wait_for_deployed: "render_cloud_init",
    classify_deploy_failure: "render_cloud_init",
    recover_for_datasource_retry: "render_cloud_init",
    ensure_hardware_sync_configured: "ensure_hardware_sync_configured",
    wait_for_hardware_sync_healthy: "ensure_hardware_sync_configured",
    wait_for_agent_enrollment: "ensure_hardware_sync_configured",
  },
} as const satisfies Readonly<
  Record<"retry" | "resume", Readonly<Partial<Record<ProvisioningStage, ProvisioningStage>>>>
>;

/** Facts that count how often the workflow has tried to recover by itself; an operator's verb resets the counts. */
export const PROVISION_COUNTERS = [
  "datasource_retries",
  "events_unread",
  "token_refreshes",
  "reseeds",
] as const satisfies readonly (keyof ProvisionState)[];
