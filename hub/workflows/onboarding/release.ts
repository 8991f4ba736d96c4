import { MaasError } from "../../maas/port.ts";
import type { Failed, Wait } from "../engine/stage.ts";
import { maasOf, type OnboardContext, systemIdOf } from "./context.ts";
import { freshMachine, judgeMachine, waitForMachine } from "./machine.ts";
import type { OnboardState } from "./onboard-state.ts";

/** An abort shows in the status only after MAAS has powered the machine off (maas 2.6); until then it is not asked for again. */
const ABORT_SHOWS_WITHIN_SECONDS = 120;

export type ReleaseStep = { readonly kind: "ready" } | Wait<OnboardState> | Failed<OnboardState>;

/**
 * One step on the way of a failed deploy back to Ready: look, then abort, release or wait (lifecycle 4.3). Called again until it says
 * `ready`. A deployed machine that is not this onboarding's is nobody's to release.
 */
export async function stepBackToReady(
  at: "recover_for_datasource_retry" | "compensation",
  context: OnboardContext,
  why: string,
): Promise<ReleaseStep> {
  const machine = await freshMachine(context);
  const verdict = await judgeMachine(at, context, machine);
  const comment = `muster onboarding ${context.workflowId}: ${why}`;
  switch (verdict.kind) {
    case "go_on":
      return { kind: "ready" };
    case "failed":
      return verdict;
    case "abort": {
      if (!abortIsUnderWay(context))
        await acceptConflict(async () => (await maasOf(context)).abort(systemIdOf(context), comment));
      const at = context.state.abort_requested_at ?? context.now.toISOString();
      const patch = { abort_requested_at: abortIsUnderWay(context) ? at : context.now.toISOString() };
      return { ...waitForMachine(context, "MAAS to abort the deploy"), patch };
    }
    case "release":
      await acceptConflict(async () => (await maasOf(context)).release(systemIdOf(context), { comment }));
      return {
        ...waitForMachine(context, "MAAS to release the machine"),
        seconds: 5,
        patch: { abort_requested_at: null },
      };
    default:
      return waitForMachine(context, `MAAS to release the machine ('${machine.statusName}')`);
  }
}

function abortIsUnderWay({ state, now }: OnboardContext): boolean {
  const at = state.abort_requested_at;
  return typeof at === "string" && now.getTime() - Date.parse(at) < ABORT_SHOWS_WITHIN_SECONDS * 1000;
}

/** The status moved between our look and our call: the next look says where it is now. Other faults are the engine's to retry. */
async function acceptConflict(call: () => Promise<unknown>): Promise<void> {
  try {
    await call();
  } catch (error) {
    if (error instanceof MaasError && error.code === "state_conflict") return;
    throw error;
  }
}
