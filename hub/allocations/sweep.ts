import type { Log } from "../../shared/log.ts";
import { lockSettledGrants } from "../db/queries/allocations.ts";
import { readTask } from "../db/queries/task-reads.ts";
import type { InTx, Tx } from "../db/tx.ts";
import { moveAllocation } from "../node/allocation-moves.ts";
import type { WakeSignal } from "../timing/wake-signal.ts";
import { judgeGrant } from "./judge-grant.ts";

const EVERY_MS = 2_000;
/** The number of allocations that one step of the sweep moves. The next sweep continues with further allocations. */
const AT_ONCE = 50;
const OWNER = "muster";

export interface AllocationSweep {
  readonly inTx: InTx;
  readonly log: Log;
}

/**
 * Moves every allocation that can move without an operator: it reads the tasks of `granting` allocations. The sweep decides from the stored rows alone,
 * so any hub may run it at any time, and again after a hub was killed. Returns the number of moved allocations.
 */
export const sweepAllocations = ({ inTx }: Pick<AllocationSweep, "inTx">): Promise<number> => inTx(settleGrants);

async function settleGrants(tx: Tx): Promise<number> {
  const settled = await lockSettledGrants(tx, AT_ONCE);
  for (const row of settled) {
    const verdict = judgeGrant(row.grantTaskId === null ? null : await readTask(tx, row.grantTaskId));
    const { to, message } = verdict;
    const error = verdict.to === "failed" ? { errorCode: verdict.code, errorMessage: message } : {};
    await moveAllocation(tx, row, { from: "granting", to }, { owner: OWNER, message, ...error });
  }
  return settled.length;
}

/** Sweeps every two seconds, and at once when `due` is raised, for example because the agent has ended a task. */
export function startAllocationSweep(options: AllocationSweep & { readonly due: WakeSignal }): {
  close(): Promise<void>;
} {
  const { due, log } = options;
  let closing = false;
  const loop = async (): Promise<void> => {
    while (!closing) {
      await sweepAllocations(options).catch((error: unknown) =>
        log.warn("the sweep of allocations failed; the next sweep tries again", { error }),
      );
      if (!closing) await due.wait(EVERY_MS);
    }
  };
  const done = loop();
  return {
    close: async () => {
      closing = true;
      due.raise();
      await done;
    },
  };
}
