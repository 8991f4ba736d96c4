import { failure } from "../../shared/failures.ts";
import { readObservedMachine } from "../db/queries/maas-machines.ts";
import { waitKey } from "../db/queries/workflow-wakes.ts";
import type { MaasMachineRow } from "../db/schema/index.ts";
import type { MaasMachine } from "../maas/port.ts";
import { maasOf, type OnboardContext, systemIdOf } from "./context.ts";
import type { Wait } from "./engine/stage.ts";
import type { OnboardState } from "./onboard-state.ts";
import { StageFailure } from "./stage-failure.ts";
import { type JudgedAt, type Judgement, judge } from "./verdict-table.ts";

/** An observation older than this says that the site's watcher does not keep up: the stage looks itself. */
const STALE_SECONDS = 90;
/** How long a stage waits for the watcher's word before it looks again. */
const LOOK_AGAIN_SECONDS = 15;

/** Reads the one machine from MAAS. Throws `machine_vanished` when it is gone (lifecycle 4.11). */
export async function freshMachine(context: OnboardContext): Promise<MaasMachine> {
  const systemId = systemIdOf(context);
  const machine = await (await maasOf(context)).readMachine(systemId);
  if (machine !== null) return machine;
  const message = `Machine ${context.onboarding.hostname} (${systemId}) is not in MAAS any more. If it was re-created, restart clean; else start a new onboarding.`;
  throw new StageFailure(failure("state_ambiguity", "machine_vanished", message, { maas_system_id: systemId }));
}

/** Whether this onboarding meant to deploy the machine and our MAAS user owns it; only then is a deployed machine its own work. */
export function isOurs(context: OnboardContext, machine: MaasMachine): boolean {
  const { deploy_intent: intent, maas_username: username } = context.state;
  return intent !== null && intent !== undefined && username !== undefined && machine.owner === username;
}

export const judgeMachine = (at: JudgedAt, context: OnboardContext, machine: MaasMachine): Judgement =>
  judge(at, machine, isOurs(context, machine));

/** What the watcher last saw of the machine since this stage was entered; null while it has seen nothing of use. */
async function observed(context: OnboardContext): Promise<MaasMachineRow | null> {
  const row = await readObservedMachine(context.services.db, context.site.id, systemIdOf(context));
  return row !== null && row.observedAt > context.enteredAt ? row : null;
}

/**
 * Looks at the watcher's observation, and at the machine itself only when `concludes` says that the observation ends the wait, or when
 * there is none recent enough. So a wait costs no request of its own, and no verdict rests on an old look.
 */
export async function watchedMachine(
  context: OnboardContext,
  concludes: (row: MaasMachineRow) => boolean,
): Promise<MaasMachine | null> {
  const row = await observed(context);
  const since = row?.observedAt ?? context.enteredAt;
  const stale = context.now.getTime() - since.getTime() > STALE_SECONDS * 1000;
  const late = context.now >= context.deadline;
  if (!stale && !late && (row === null || !(row.absent || concludes(row)))) return null;
  return freshMachine(context);
}

export function waitForMachine(context: OnboardContext, reason: string): Wait<OnboardState> {
  return {
    kind: "wait",
    reason,
    seconds: LOOK_AGAIN_SECONDS,
    on: waitKey.machine(context.site.id, systemIdOf(context)),
  };
}
