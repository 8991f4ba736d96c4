import type { Log } from "../../shared/log.ts";
import type { InTx } from "../db/tx.ts";
import { periodically } from "../timing/periodically.ts";
import { sweepBaselines } from "./baseline.ts";

const EVERY_MS = 15_000;

/**
 * Orders a baseline, which is a snapshot of a clean host, for each generation of a node without a baseline (architecture 14.4). Every hub runs the
 * sweep. Database rows say which baselines are missing, so a killed hub loses nothing.
 */
export function startBaselineSweep({ inTx, log }: { readonly inTx: InTx; readonly log: Log }): {
  close(): Promise<void>;
} {
  const turn = async (): Promise<void> => {
    const done = await inTx((tx) => sweepBaselines(tx));
    if (done.ordered + done.taken + done.refused > 0) log.info("baselines of nodes", done);
    if (done.refused > 0) log.warn("baselines of nodes were refused", { count: done.refused });
  };
  return periodically({ everyMs: EVERY_MS, turn, log, failed: "the sweep for baselines failed" });
}
