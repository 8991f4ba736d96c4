import { z } from "zod";
import type { FailureClass, FailureCode } from "../../../shared/failures.ts";
import { type Failure, failure } from "../../../shared/failures.ts";
import type { NodeId } from "../../../shared/ids.ts";
import type { OnboardingStage } from "../../../shared/workflow-status.ts";
import { type OnboardingRows, readOnboardingRows } from "../../db/queries/onboardings.ts";
import type { MaasPort } from "../../maas/port.ts";
import type { Stage, StageRun, StagesOf } from "../engine/stage.ts";
import { inFencedTx, type WorkflowServices } from "../services.ts";
import { StageFailure } from "../stage-failure.ts";
import type { OnboardState } from "./onboard-state.ts";

/** All other data of the onboarding is in its own row. */
export const OnboardInput = z.object({ hostname: z.string(), ipmi_ip: z.string() });
export type OnboardInput = z.output<typeof OnboardInput>;

export interface OnboardContext extends StageRun<OnboardInput, OnboardState>, OnboardingRows {
  readonly services: WorkflowServices;
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
  return { ...run, ...rows, services };
}

export const maasOf = (context: OnboardContext): Promise<MaasPort> => context.services.maas(context.site.id);

/** The machine that earlier stages found; a row without it (an edited state) cannot continue. */
export function systemIdOf(context: OnboardContext): string {
  const systemId = context.state.maas_system_id;
  if (systemId !== null && systemId !== undefined) return systemId;
  return missing("the MAAS machine");
}

export function provisioningOf(context: OnboardContext): { nodeId: NodeId; generation: number } {
  const { node_id: nodeId, generation } = context.state;
  if (nodeId === null || nodeId === undefined || generation === null || generation === undefined) {
    return missing("the node and its generation");
  }
  return { nodeId, generation };
}

function missing(what: string): never {
  const message = `The onboarding's record does not say ${what} that an earlier stage should have written. Rerun from the top.`;
  throw new StageFailure(failure("state_ambiguity", "node_state_conflict", message));
}

/**
 * The last observation before a call that cannot be undone: a process that was paused past its lease must not act on an old observation. The remaining
 * gap is the moment between this and the call.
 */
export const mustStillHold = (context: OnboardContext): Promise<void> => inFencedTx(context, async () => undefined);

/** The deadline of a stage, from the profile (lifecycle 4.14, decision M7). */
export function profileTimeout<C extends FailureClass>(
  knob: TimeoutKnob,
  cls: C,
  code: FailureCode<C>,
  what: string,
): { seconds(context: OnboardContext): number; failure(context: OnboardContext): Failure } {
  return {
    seconds: (context) => context.profile[knob],
    failure: (context): Failure =>
      failure(cls, code, `${what} took longer than the profile allows (${context.profile[knob]} s).`, {
        timeout_seconds: context.profile[knob],
        timeout_knob: knob,
        hostname: context.onboarding.hostname,
        maas_system_id: context.state.maas_system_id ?? null,
      }),
  };
}

type TimeoutKnob = Extract<keyof OnboardingRows["profile"], `${string}TimeoutSeconds`>;
