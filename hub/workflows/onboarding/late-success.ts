import { lockLateEnrollments } from "../../db/queries/late-enrollments.ts";
import type { InTx } from "../../db/tx.ts";
import type { Log } from "../../log.ts";
import { periodically } from "../../timing/periodically.ts";
import { applyVerb } from "../engine/apply-verb.ts";
import type { Workflow } from "../engine/workflow.ts";
import { ONBOARD } from "./onboard.ts";

const EVERY_MS = 5_000;
/** One transaction's worth; the rest follows at the next turn. */
const AT_ONCE = 50;

interface LateSuccessOptions {
  readonly inTx: InTx;
  readonly workflows: readonly Workflow[];
}

/**
 * An agent may enroll after its onboarding has given up on it (lifecycle 4.13). Such an onboarding adopts what is there by itself, as an operator would by
 * the verb, audited like one; it ends as `reconciled`. Returns how many were taken up.
 */
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

/** Looks every few seconds; several hubs share the work by locks on the rows. */
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
