import type { Log } from "../../shared/log.ts";
import type { InTx } from "../db/tx.ts";
import { periodically } from "../timing/periodically.ts";
import { endExpiredOverrides } from "./health-override.ts";

const EVERY_MS = 15_000;
/** The largest number of health overrides that one transaction ends; the next turn ends further ones. */
const AT_ONCE = 200;

/** Ends health overrides whose time is over. An expired health override has no effect, even before the hub records its end. */
export const startOverrideExpiry = ({ inTx, log }: { inTx: InTx; log: Log }) =>
  periodically({
    everyMs: EVERY_MS,
    turn: async () => {
      await inTx((tx) => endExpiredOverrides(tx, AT_ONCE));
    },
    log,
    failed: "expired health overrides could not be ended",
  });
