import { z } from "zod";
import { NodeId } from "../ids.ts";
import { SignalOutcome } from "../readiness.ts";

/** The token with which a host reports its status. The two URLs contain the token. A proxy's host name may replace the host name in the URLs. */
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
  /** The node's present generation. A signal of another generation is stored and not applied. */
  node_generation: z.int(),
});
