import type { EventData, EventType } from "../../../shared/events.ts";
import type { ONBOARDING_STAGES, OnboardingStage, WorkflowStatus } from "../../../shared/workflow-status.ts";
import { admitWithin, ONBOARDINGS } from "../../db/queries/admission.ts";
import { releaseDeploySlot } from "../../db/queries/deploy-slots.ts";
import { recordDomainEvent } from "../../db/queries/domain-events.ts";
import type { Workflow as WorkflowRow } from "../../db/schema/index.ts";
import { ending } from "../engine/ending.ts";
import { defineWorkflow, type Workflow } from "../engine/workflow.ts";
import { observedEvidence } from "../provisioning/machine.ts";
import { PROVISION_COUNTERS, PROVISION_RESTART, PROVISION_STAGES } from "../provisioning/provisioning.ts";
import type { WorkflowServices } from "../services.ts";
import { buildOnboardContext, type OnboardContext, OnboardInput, type OnboardStages } from "./context.ts";
import { recordPowerLogin } from "./credential-outcome.ts";
import { OnboardState } from "./onboard-state.ts";
import { checkHardware } from "./stages/check-hardware.ts";
import { commissionNode } from "./stages/commission-node.ts";
import { createOrFindInMaas } from "./stages/create-or-find-in-maas.ts";
import { loadSiteConfig } from "./stages/load-site-config.ts";
import { resolvePowerCredentials } from "./stages/resolve-power-credentials.ts";
import { waitForReady } from "./stages/wait-for-ready.ts";

export const ONBOARD = "onboard";

/** The list of an onboarding's stages has one stage for each name in `ONBOARDING_STAGES`, in the order of the names (lifecycle 4.3). */
const ONBOARD_STAGES: OnboardStages<typeof ONBOARDING_STAGES> = [
  loadSiteConfig,
  resolvePowerCredentials,
  createOrFindInMaas,
  commissionNode,
  waitForReady,
  ...PROVISION_STAGES,
  checkHardware,
];

/** Maps a failed stage to the stage at which `retry` begins; without an entry, `retry` begins at the failed stage. */
const RETRY_AT: Readonly<Partial<Record<OnboardingStage, OnboardingStage>>> = {
  // Failed commissioning and failed tests of a machine stay failed until `commission_node` starts them anew.
  wait_for_ready: "commission_node",
  ...PROVISION_RESTART.retry,
};

/** Maps a failed stage to the stage at which `resume` begins; every later stage observes before it acts (lifecycle 4.9). */
const RESUME_AT: Readonly<Record<OnboardingStage, OnboardingStage>> = {
  load_site_config: "load_site_config",
  resolve_power_credentials: "load_site_config",
  create_or_find_in_maas: "resolve_power_credentials",
  commission_node: "resolve_power_credentials",
  wait_for_ready: "commission_node",
  configure_storage: "commission_node",
  apply_roce_phase2: "commission_node",
  ensure_pxe_interface_auto: "commission_node",
  render_cloud_init: "commission_node",
  ...PROVISION_RESTART.resume,
  // A `resume` after a failed hardware check first waits for the agent, because since the failure a person has repaired the host or the agent has
  // come back.
  check_hardware: "wait_for_agent_enrollment",
};

const EVENTS = {
  completed: "node.onboarding.completed",
  reconciled: "node.onboarding.completed",
  cancelled: "node.onboarding.cancelled",
  failed_retryable: "node.onboarding.failed",
  failed_manual_intervention: "node.onboarding.manual_intervention_required",
} as const satisfies Partial<Record<WorkflowStatus, EventType>>;

const isEnding = (status: WorkflowStatus): status is keyof typeof EVENTS => status in EVENTS;

export function onboardWorkflow(services: WorkflowServices): Workflow {
  const restart: Readonly<Record<"retry" | "resume", Readonly<Partial<Record<string, OnboardingStage>>>>> = {
    retry: RETRY_AT,
    resume: RESUME_AT,
  };
  return defineWorkflow<OnboardContext, OnboardInput, OnboardState>({
    kind: ONBOARD,
    stages: ONBOARD_STAGES,
    input: OnboardInput,
    state: OnboardState.partial(),
    renamed: {},
    buildContext: (run) => buildOnboardContext(services, run),
    observedEvidence,
    hooks: {
      onStarted: (tx, row) =>
        recordDomainEvent(tx, { type: "node.onboarding.started", ...about(row), data: hostOf(row) }),
      onEnded: async (tx, row, end) => {
        const { status, failure } = end;
        await releaseDeploySlot(tx, row.id);
        await recordPowerLogin(tx, row, failure);
        if (!isEnding(status)) return;
        const data = { ...hostOf(row), ...ending(row, end) };
        await recordDomainEvent(tx, { type: EVENTS[status], ...about(row), data });
      },
    },
    restartPoint: (verb, stage) => restart[verb][stage] ?? stage,
    forgottenOnRerun: ["deploy_failure"],
    // An onboarding that an operator continues keeps the record `discovery` in its state, because MAAS may have created a machine for the host since
    // the discovery began.
    forgottenOnRecovery: [...PROVISION_COUNTERS, "create_rejections", "create_unusable", "discovery_power"],
    admit: (tx) => admitWithin(tx, ONBOARD, ONBOARDINGS),
  });
}

const about = (row: WorkflowRow) => ({ subject: `onboardings/${row.id}` });

function hostOf(row: WorkflowRow): EventData<"node.onboarding.started"> {
  const input = OnboardInput.safeParse(row.input);
  const host = input.success ? { hostname: input.data.hostname } : {};
  return { onboarding_id: row.id, batch_id: row.batchId, site_id: row.siteId, ...host };
}
