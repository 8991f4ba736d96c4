import type { Log } from "../../shared/log.ts";
import { sampleFleet } from "../db/queries/fleet-samples.ts";
import type { InTx } from "../db/tx.ts";
import { periodically } from "../timing/periodically.ts";

/** A hub that has just started takes the sample of the present ten minutes within this time, if no other hub has taken the sample. */
const EVERY_MS = 60_000;

/** Takes samples of the fleet, from which the page draws how the fleet stood in the past. If there are several hubs, one of them takes each sample. */
export const startFleetSamples = ({ inTx, log }: { inTx: InTx; log: Log }) =>
  periodically({
    everyMs: EVERY_MS,
    turn: async () => {
      await inTx(sampleFleet);
    },
    log,
    failed: "no sample of the fleet could be taken",
  });
