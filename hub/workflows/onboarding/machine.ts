import { type Evidence, failure } from "../../../shared/failures.ts";
import type { MaasMachineRow } from "../../db/schema/index.ts";
import type { MaasMachine } from "../../maas/port.ts";
import { isSameOwner } from "../../maas/same-owner.ts";
import type { Failed, Wait } from "../engine/stage.ts";
import { type JudgedMachine, type Judgement, type Judging, judge } from "../machine/verdict-table.ts";
import { seenEvidence, waitForObservation, watchMachine } from "../machine/watch-machine.ts";
import { StageFailure } from "../stage-failure.ts";
import { maasOf, type OnboardContext, systemIdOf } from "./context.ts";
import type { OnboardState } from "./onboard-state.ts";

/** Reads the one machine from MAAS. Throws `machine_vanished` when it is gone (lifecycle 4.11). */
export async function freshMachine(context: OnboardContext): Promise<MaasMachine> {
  const systemId = systemIdOf(context);
  const machine = await (await maasOf(context)).readMachine(systemId);
  if (machine !== null) return machine;
  const message = `Machine ${context.onboarding.hostname} (${systemId}) is not in MAAS any more. If it was re-created, restart clean; else start a new onboarding.`;
  throw new StageFailure(failure("state_ambiguity", "machine_vanished", message, { maas_system_id: systemId }));
}

const meantToDeploy = ({ state }: OnboardContext): boolean =>
  state.deploy_intent !== null && state.deploy_intent !== undefined;

/** By the name that our MAAS user had when the deploy was asked for, and as who he is by now where that is known. */
const isOursAs = (context: OnboardContext, { owner }: Pick<MaasMachine, "owner">, now: string | null): boolean => {
  const name = context.state.maas_username;
  if (!meantToDeploy(context) || owner === null || typeof name !== "string") return false;
  return isSameOwner(name, owner, now === null ? null : { name: now, formerNames: [name] });
};

/**
 * Whether this onboarding meant to deploy the machine and our MAAS user owns it; only then is a deployed machine its own work. A user that was
 * renamed owns it still, under the name that the token's user has now.
 */
export async function isOurs(context: OnboardContext, machine: Pick<MaasMachine, "owner">): Promise<boolean> {
  if (isOursAs(context, machine, null)) return true;
  if (!meantToDeploy(context) || machine.owner === null) return false;
  return isOursAs(context, machine, (await (await maasOf(context)).whoami()).username);
}

/** MAAS is asked for our user's name only where the verdict hangs on it. */
export async function judgeMachine(at: Judging, context: OnboardContext, machine: JudgedMachine): Promise<Judgement> {
  const [ours, others] = [judge(at, machine, true), judge(at, machine, false)];
  return sameVerdict(ours, others) || (await isOurs(context, machine)) ? ours : others;
}

const sameVerdict = (one: Judgement, other: Judgement): boolean =>
  one.kind === "failed" && other.kind === "failed" ? one.failure.code === other.failure.code : one.kind === other.kind;

/** Of what the watcher saw: enough to see that there is reason to look. */
export const judgeSeen = (at: Judging, context: OnboardContext, machine: JudgedMachine): Judgement =>
  judge(at, machine, isOursAs(context, machine, null));

/** The machine where there is reason to look at it (`watchMachine`); null: nothing new. */
export const watchedMachine = (
  context: OnboardContext,
  concludes: (row: MaasMachineRow) => boolean,
): Promise<MaasMachine | null> =>
  watchMachine(
    {
      db: context.services.db,
      inTx: context.services.inTx,
      siteId: context.site.id,
      systemId: systemIdOf(context),
      now: context.now,
      deadline: context.deadline,
      fresh: () => freshMachine(context),
    },
    concludes,
  );

/**
 * For stages that wait for the host rather than for MAAS: a machine that somebody released, broke, took or deleted meanwhile ends the wait
 * at once (decision M2) instead of at its deadline. Null: it is deployed and ours as it should be. Throws `machine_vanished`.
 */
export async function machineTaken(
  stage: "ensure_hardware_sync_configured" | "wait_for_hardware_sync_healthy" | "wait_for_agent_enrollment",
  context: OnboardContext,
): Promise<Failed<OnboardState> | null> {
  const machine = await watchedMachine(context, (row) => judgeSeen(stage, context, row).kind === "failed");
  const verdict = machine === null ? null : await judgeMachine(stage, context, machine);
  return verdict?.kind === "failed" ? verdict : null;
}

/** What the watcher last saw of the machine: no failure leaves an operator without it (lifecycle 4.12). */
export async function observedEvidence(context: OnboardContext): Promise<Evidence> {
  const systemId = context.state.maas_system_id;
  if (typeof systemId !== "string") return {};
  return seenEvidence(context.services.db, context.site.id, systemId);
}

export const waitForMachine = (context: OnboardContext, reason: string): Wait<OnboardState> =>
  waitForObservation(context.site.id, systemIdOf(context), reason);
