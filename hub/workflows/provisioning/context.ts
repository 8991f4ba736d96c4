import type { FailureClass, FailureCode } from "../../../shared/failures.ts";
import { type Failure, failure } from "../../../shared/failures.ts";
import type { NodeId } from "../../../shared/ids.ts";
import type { ProvisioningStage } from "../../../shared/workflow-status.ts";
import type { MaasSite, MaasSiteProfile, Sku } from "../../db/schema/index.ts";
import type { MaasPort } from "../../maas/port.ts";
import type { Stage, StageRun, StagesOf } from "../engine/stage.ts";
import { inFencedTx, type WorkflowServices } from "../services.ts";
import { StageFailure } from "../stage-failure.ts";
import type { ProvisionState } from "./provision-state.ts";

export interface ProvisionedHost {
  readonly nodeId: NodeId;
  readonly hostname: string;
  readonly ipmiIp: string;
}

/** Each workflow that deploys a machine can use the provisioning stages, because the stages do not depend on the workflow kind. */
export interface ProvisionContext<Input = unknown, State extends ProvisionState = ProvisionState>
  extends StageRun<Input, State> {
  readonly services: WorkflowServices;
  readonly host: ProvisionedHost;
  readonly site: MaasSite;
  readonly profile: MaasSiteProfile;
  readonly sku: Sku;
  /** The name of the operation in messages. */
  readonly operation: "onboarding" | "reimage" | "reinstall";
}
/**
 * Returns the kind of operation that owns the changes to the node's status (state model 3.3): an onboarding or a reimage. A reinstall owns the
 * changes to the node's status as a reimage does.
 */
export const ownerOf = ({ operation }: Pick<ProvisionContext, "operation">): "onboarding" | "reimage" =>
  operation === "onboarding" ? "onboarding" : "reimage";

export type ProvisionStage<Name extends ProvisioningStage = ProvisioningStage> = Stage<
  ProvisionContext,
  ProvisionState,
  Name
>;
export type ProvisionStages<Names extends readonly ProvisioningStage[]> = StagesOf<
  Names,
  ProvisionContext,
  ProvisionState
>;

export const maasOf = (context: Pick<ProvisionContext, "services" | "site">): Promise<MaasPort> =>
  context.services.maas(context.site.id);

/** Throws if the workflow's state holds no system id, for example because somebody edited the state. */
export function systemIdOf(context: Pick<ProvisionContext, "state" | "operation">): string {
  const systemId = context.state.maas_system_id;
  if (systemId !== null && systemId !== undefined) return systemId;
  return missing(context, "the MAAS machine");
}

export function provisioningOf(context: Pick<ProvisionContext, "state" | "operation">): {
  nodeId: NodeId;
  generation: number;
} {
  const { node_id: nodeId, generation } = context.state;
  if (nodeId === null || nodeId === undefined || generation === null || generation === undefined) {
    return missing(context, "the node and its generation");
  }
  return { nodeId, generation };
}

function missing({ operation }: Pick<ProvisionContext, "operation">, what: string): never {
  const message = `The ${operation}'s record does not say ${what} that an earlier stage should have written. Rerun from the top.`;
  throw new StageFailure(failure("state_ambiguity", "node_state_conflict", message));
}

/**
 * Checks, just before a call that cannot be undone, that this hub still holds the lease on the workflow. A process that was paused for longer than
 * its lease must not act on an old observation. `mustStillHold` cannot prevent that the process pauses between the check of the lease and the call
 * that follows.
 */
export const mustStillHold = (context: ProvisionContext): Promise<void> => inFencedTx(context, async () => undefined);

export function profileTimeout<C extends FailureClass>(
  knob: TimeoutKnob,
  cls: C,
  code: FailureCode<C>,
  what: string,
): { seconds(context: ProvisionContext): number; failure(context: ProvisionContext): Failure } {
  return {
    seconds: (context) => context.profile[knob],
    failure: (context): Failure =>
      failure(cls, code, `${what} took longer than the profile allows (${context.profile[knob]} s).`, {
        timeout_seconds: context.profile[knob],
        timeout_knob: knob,
        hostname: context.host.hostname,
        maas_system_id: context.state.maas_system_id ?? null,
      }),
  };
}

type TimeoutKnob = Extract<keyof MaasSiteProfile, `${string}TimeoutSeconds`>;
