import type { Log } from "../../../shared/log.ts";
import { lockLateEnrollments } from "../../db/queries/late-enrollments.ts";
import type { InTx } from "../../db/tx.ts";
import { periodically } from "../../timing/periodically.ts";
import { applyVerb } from "../engine/apply-verb.ts";
import type { Workflow } from "../engine/workflow.ts";
import { ONBOARD } from "./onboard.ts";

const EVERY_MS = 5_000;
/**
 * One transaction handles at most `AT_ONCE` onboardings whose agents enrolled late. The next check for late enrollments handles the onboardings
 * beyond `AT_ONCE`.
 */
const AT_ONCE = 50;

interface LateSuccessOptions {
  readonly inTx: InTx;
  readonly workflows: readonly Workflow[];
}

/** The hub applies the verb `adopt` to a failed onboarding whose agent enrolled after the failure (lifecycle 4.13). */
export async function adoptLateSuccesses({ inTx, workflows }: LateSuccessOptions): Promise<number> {
  return inTx(async (tx) => {
    const ids = await lockLateEnrollments(tx, ONBOARD, AT_ONCE);
    for (const workflowId of ids) {
      await applyVerb(tx, workflows, {
        workflowId,
        verb: "adopt",
        actor: "muster",
        role: "system",
        reason: "The agent enrolled and is healthy after the onboarding had given up on it",
      });
    }
    return ids.length;
  });
}

/** By locks on the rows of onboardings, several hubs divide the work of adopting onboardings whose agents enrolled late. */
export const startLateSuccess = (options: LateSuccessOptions & { readonly log: Log }): { close(): Promise<void> } =>
  periodically({
    everyMs: EVERY_MS,
    turn: async () => {
      const adopted = await adoptLateSuccesses(options);
      if (adopted > 0) options.log.info("late enrollments adopted", { count: adopted });
    },
    log: options.log,
    failed: "late enrollments could not be looked for",
  });
