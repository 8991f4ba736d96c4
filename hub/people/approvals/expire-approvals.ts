import type { Log } from "../../../shared/log.ts";
import { lockPastApprovals } from "../../db/queries/approvals.ts";
import type { InTx } from "../../db/tx.ts";
import { periodically } from "../../timing/periodically.ts";
import { HUB, moveApproval } from "./move-approval.ts";

const EVERY_MS = 60_000;
const AT_ONCE = 100;

/**
 * Tells by events which approvals have expired. An approval counts as expired as soon as its time is over, even before `expireApprovals` has recorded
 * it.
 */
export const expireApprovals = (inTx: InTx): Promise<number> =>
  inTx(async (tx) => {
    const past = await lockPastApprovals(tx, AT_ONCE);
    for (const approval of past) await moveApproval(tx, approval, "expired", { source: HUB });
    return past.length;
  });

export const startApprovalExpiry = ({ inTx, log }: { readonly inTx: InTx; readonly log: Log }) =>
  periodically({
    everyMs: EVERY_MS,
    turn: async () => {
      await expireApprovals(inTx);
    },
    log,
    failed: "expired approvals could not be marked",
  });
