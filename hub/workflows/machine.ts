import { type Evidence, failure } from "../../shared/failures.ts";
import type { MaasMachineRow } from "../db/schema/index.ts";
import type { MaasMachine } from "../maas/port.ts";
import { maasOf, type OnboardContext, systemIdOf } from "./context.ts";
import type { Failed, Wait } from "./engine/stage.ts";
import type { OnboardState } from "./onboard-state.ts";
import { StageFailure } from "./stage-failure.ts";
import { type JudgedMachine, type Judgement, type Judging, judge } from "./verdict-table.ts";
import { seenEvidence, waitForSight, watchMachine } from "./watch-machine.ts";

/** Reads the one machine from MAAS. Throws `machine_vanished` when it is gone (lifecycle 4.11). */
export async function freshMachine(context: OnboardContext): Promise<MaasMachine> {
  const systemId = systemIdOf(context);
  const machine = await (await maasOf(context)).readMachine(systemId);
  if (machine !== null) return machine;
  const message = `Machine ${context.onboarding.hostname} (${systemId}) is not in MAAS any more. If it was re-created, restart clean; else start a new onboarding.`;
  throw new StageFailure(failure("state_ambiguity", "machine_vanished", message, { maas_system_id: systemId }));
}

/** Whether this onboarding meant to deploy the machine and our MAAS user owns it; only then is a deployed machine its own work. */
export function isOurs(context: OnboardContext, machine: Pick<MaasMachine, "owner">): boolean {
  const { deploy_intent: intent, maas_username: username } = context.state;
  return intent !== null && intent !== undefined && username !== undefined && machine.owner === username;
}

export const judgeMachine = (at: Judging, context: OnboardContext, machine: JudgedMachine): Judgement =>
  judge(at, machine, isOurs(context, machine));

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
  const machine = await watchedMachine(context, (row) => judgeMachine(stage, context, row).kind === "failed");
  const verdict = machine === null ? null : judgeMachine(stage, context, machine);
  return verdict?.kind === "failed" ? verdict : null;
}

/** What the watcher last saw of the machine: no failure leaves an operator without it (lifecycle 4.12). */
export async function observedEvidence(context: OnboardContext): Promise<Evidence> {
  const systemId = context.state.maas_system_id;
  if (typeof systemId !== "string") return {};
  return seenEvidence(context.services.db, context.site.id, systemId);
}

export const waitForMachine = (context: OnboardContext, reason: string): Wait<OnboardState> =>
  waitForSight(context.site.id, systemIdOf(context), reason);
