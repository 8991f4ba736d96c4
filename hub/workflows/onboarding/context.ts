import { z } from "zod";
import { failure } from "../../../shared/failures.ts";
import type { OnboardingStage } from "../../../shared/workflow-status.ts";
import { type OnboardingRows, readOnboardingRows } from "../../db/queries/onboardings.ts";
import type { Stage, StageRun, StagesOf } from "../engine/stage.ts";
import type { ProvisionContext } from "../provisioning/context.ts";
import type { WorkflowServices } from "../services.ts";
import { StageFailure } from "../stage-failure.ts";
import type { OnboardState } from "./onboard-state.ts";

export const OnboardInput = z.object({ hostname: z.string(), ipmi_ip: z.string() });
export type OnboardInput = z.output<typeof OnboardInput>;

/** Only the stages that find and commission the machine read the row of the onboarding. */
export interface OnboardContext extends ProvisionContext<OnboardInput, OnboardState> {
  readonly onboarding: OnboardingRows["onboarding"];
}
export type OnboardStage<Name extends OnboardingStage = OnboardingStage> = Stage<OnboardContext, OnboardState, Name>;
export type OnboardStages<Names extends readonly OnboardingStage[]> = StagesOf<Names, OnboardContext, OnboardState>;

export async function buildOnboardContext(
  services: WorkflowServices,
  run: StageRun<OnboardInput, OnboardState>,
): Promise<OnboardContext> {
  const rows = await readOnboardingRows(services.db, run.workflowId);
  if (rows === null) {
    const message = `The site, profile or SKU of onboarding ${run.workflowId} does not exist any more. Start a new onboarding.`;
    throw new StageFailure(failure("input_config_error", "profile_unknown", message));
  }
  const { nodeId, hostname, ipmiIp } = rows.onboarding;
  return { ...run, ...rows, services, operation: "onboarding", host: { nodeId, hostname, ipmiIp } };
}
