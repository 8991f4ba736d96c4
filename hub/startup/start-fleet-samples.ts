import type { Log } from "../../shared/log.ts";
import { sampleFleet } from "../db/queries/fleet-samples.ts";
import type { InTx } from "../db/tx.ts";
import { periodically } from "../timing/periodically.ts";

/** Every minute each hub tries to take the fleet sample of the present ten minutes, and does nothing if a hub has already taken this sample. */
const EVERY_MS = 60_000;

/**
 * Takes samples of the fleet's state, from which the web page draws the fleet's history. If there are several hubs, only one of them takes each
 * sample of the fleet.
 */
export const startFleetSamples = ({ inTx, log }: { inTx: InTx; log: Log }) =>
  periodically({
    everyMs: EVERY_MS,
    turn: async () => {
      await inTx(sampleFleet);
    },
    log,
    failed: "no sample of the fleet could be taken",
  });
