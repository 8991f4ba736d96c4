import { z } from "zod";
import type { FailureClass, FailureCode } from "../../shared/failures.ts";
import { type Failure, failure } from "../../shared/failures.ts";
import type { NodeId, SiteId } from "../../shared/ids.ts";
import type { OpenBmc } from "../bmc/port.ts";
import { type OnboardingRows, readOnboardingRows } from "../db/queries/onboarding-work.ts";
import { holdsFence } from "../db/queries/workflows.ts";
import type { Db, InTx, Tx } from "../db/tx.ts";
import type { Log } from "../log.ts";
import type { MaasPort } from "../maas/port.ts";
import type { SecretStore } from "../secrets/port.ts";
import type { Stage, StageRun } from "./engine/stage.ts";
import type { OnboardState } from "./onboard-state.ts";
import { StageFailure } from "./stage-failure.ts";

/** What first boot needs to know of this hub (lifecycle 9). */
export interface FirstBoot {
  readonly agentUrl: string;
  /** The CA in PEM, and base64url of the raw Ed25519 key that signs orders. Throws `SecretError` while the secret store has not given them. */
  readonly keys: () => { readonly caBundlePem: string; readonly taskSigningPublicKey: string };
  /** Where hosts of an architecture (Debian's name) fetch the agent; null where their image must bring it. */
  readonly agentPackage: (architecture: string) => Promise<{ readonly url: string; readonly sha256: string } | null>;
}

/** What the stages of an onboarding use; composed once, in the hub's main. */
export interface OnboardServices {
  readonly db: Db;
  readonly inTx: InTx;
  readonly log: Log;
  readonly secrets: SecretStore;
  /** The site's client with its rate limit; reads the token afresh, so that a rotation needs no restart. */
  readonly maas: (siteId: SiteId) => Promise<MaasPort>;
  readonly bmc: OpenBmc;
  readonly firstBoot: FirstBoot;
}

/** Everything else that the onboarding is about stands in its own row. */
export const OnboardInput = z.object({ hostname: z.string(), ipmi_ip: z.string() });
export type OnboardInput = z.output<typeof OnboardInput>;

export interface OnboardContext extends StageRun<OnboardInput, OnboardState>, OnboardingRows {
  readonly services: OnboardServices;
}
export type OnboardStage = Stage<OnboardContext, OnboardState>;

export async function buildOnboardContext(
  services: OnboardServices,
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

/** The machine that earlier stages found; a row that lost it (an edited state) cannot go on. */
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
 * A transaction of a stage's own, for what must be written before something outside is done. It writes nothing when the lease was lost
 * meanwhile: another hub may have gone on.
 */
export async function inFencedTx<T>(
  context: Pick<StageRun<unknown, unknown>, "workflowId" | "fence"> & {
    readonly services: Pick<OnboardServices, "inTx">;
  },
  fn: (tx: Tx) => Promise<T>,
): Promise<T> {
  return context.services.inTx(async (tx) => {
    if (!(await holdsFence(tx, context.workflowId, context.fence))) throw new Error("the lease of this run was lost");
    return fn(tx);
  });
}

/**
 * The last look before a call that cannot be taken back: a process that was paused past its lease must not act on what it saw before. What is left
 * is the moment between this and the call.
 */
export const mustStillHold = (context: OnboardContext): Promise<void> => inFencedTx(context, async () => undefined);

/** Time-out of a stage as a knob of the profile (lifecycle 4.14, decision M7). */
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

/** A call that nobody heard the answer of may still be on its way in MAAS: until this long after, a machine that looks untouched proves nothing. */
export const UNHEARD_CALL_SECONDS = 30;

/** Calls to MAAS and to the secret store: three attempts (lifecycle 4.6) at what was refused; what is away is waited for. */
export const UPSTREAM_RETRY = { maxAttempts: 3, baseSeconds: 2, maxSeconds: 60 } as const;
/** A wait only looks: what it reads wrongly once must not end it. */
export const WAIT_RETRY = { maxAttempts: 20, baseSeconds: 2, maxSeconds: 60 } as const;
