import type { Log } from "../../shared/log.ts";
import type { InTx } from "../db/tx.ts";
import type { WakeSignal } from "../timing/wake-signal.ts";
import { wheneverDue } from "../timing/whenever-due.ts";
import { AT_ONCE, sweepBaselines } from "./baseline.ts";

const EVERY_MS = 15_000;

export interface BaselineSweep {
  readonly inTx: InTx;
  readonly log: Log;
  /**
   * Another part of the hub raises the wake-up signal `due` when an agent has ended a task. After `due` is raised, the hub searches for missing
   * baselines at once, because a node without a baseline takes no work.
   */
  readonly due: WakeSignal;
}

/**
 * Orders a baseline, which is a snapshot of a clean host, for each generation of a node without a baseline (architecture 14.4). Every hub runs the
 * periodic search for nodes without a baseline. The database tells which nodes lack a baseline, so a killed hub loses no order for one.
 */
export function startBaselineSweep({ inTx, log, due }: BaselineSweep): { close(): Promise<void> } {
  const turn = async (): Promise<void> => {
    for (;;) {
      const done = await inTx((tx) => sweepBaselines(tx));
      if (done.ordered + done.taken + done.refused > 0) log.info("baselines of nodes", done);
      if (done.refused > 0) log.warn("baselines of nodes were refused", { count: done.refused });
      if (Math.max(done.ordered, done.taken + done.refused) < AT_ONCE) return;
    }
  };
  return wheneverDue({ due, everyMs: EVERY_MS, turn, log, failed: "the sweep for baselines failed" });
}
