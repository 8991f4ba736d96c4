import type { NodeId } from "../../shared/ids.ts";
import { removeConditions } from "../db/queries/node-conditions.ts";
import { recordNodeEvent } from "../db/queries/node-events.ts";
import { removeSignals } from "../db/queries/readiness-signals.ts";
import { removeReceived } from "../db/queries/received-signals.ts";
import type { Tx } from "../db/tx.ts";

/**
 * Removes reports about a node that Muster does not need for decisions: conditions of unknown types, readiness signals, and the condition
 * `agent.noisy`. `clearReports` keeps the reports of the node's agent and of the hub. The condition `agent.noisy` says that the node's agent sends
 * more requests or bytes than the hub allows. If the agent continues to send too much, the hub sets the removed condition `agent.noisy` again.
 */
export async function clearReports(
  tx: Tx,
  nodeId: NodeId,
  reason: string,
): Promise<{ conditions: number; signals: number }> {
  const conditions =
    (await removeConditions(tx, nodeId, "of_others")) + (await removeConditions(tx, nodeId, "agent.noisy"));
  const signals = (await removeSignals(tx, nodeId)) + (await removeReceived(tx, nodeId));
  await recordNodeEvent(tx, {
    nodeId,
    type: "reports_cleared",
    owner: "admin_api",
    message: `${conditions} conditions and ${signals} readiness signals were cleared: ${reason}`,
  });
  return { conditions, signals };
}
