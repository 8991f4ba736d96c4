import { z } from "zod";
import { NodeId } from "../ids.ts";
import { SignalOutcome } from "../readiness.ts";

/** The addresses hold the token; a proxy's host may take the place of theirs. */
export const ReportTokenIssued = z.strictObject({
  node_id: NodeId,
  generation: z.int(),
  token: z.string(),
  phone_home_url: z.url(),
  reporting_url: z.url(),
});

export const ReadinessSignalTaken = z.strictObject({
  signal_id: z.uuid(),
  outcome: SignalOutcome,
  /** The node's present one; a signal of another is kept and not applied. */
  node_generation: z.int(),
});
