import { z } from "zod";
import { NodeId } from "../ids.ts";
import { SignalOutcome } from "../readiness.ts";

/**
 * The report token, with which a host reports its status to the hub. The host sends its reports to two URLs, which both contain the report token. If
 * a proxy stands before the hub, the proxy's host name may replace the host name in the report URLs.
 */
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
  /**
   * A host compares the node's present generation with the generation of its own readiness signal. The hub stores a readiness signal for a generation
   * other than the node's present one, but does not apply the signal.
   */
  node_generation: z.int(),
});
