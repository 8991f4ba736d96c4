import type { NodeId } from "../../shared/ids.ts";
import { removeConditions } from "../db/queries/node-conditions.ts";
import { recordNodeEvent } from "../db/queries/node-events.ts";
import { removeSignals } from "../db/queries/readiness-signals.ts";
import type { Tx } from "../db/tx.ts";

/**
 * Takes away what others left of a node and nothing of Muster's is decided by: conditions of types that Muster does not know, the readiness signals, and
 * that it was noisy. What its agent and the hub say of it stays; where it is noisy still, the hub says so again.
 */
export async function clearReports(
  tx: Tx,
  nodeId: NodeId,
  reason: string,
): Promise<{ conditions: number; signals: number }> {
  const conditions =
    (await removeConditions(tx, nodeId, "of_others")) + (await removeConditions(tx, nodeId, "agent.noisy"));
  const signals = await removeSignals(tx, nodeId);
  await recordNodeEvent(tx, {
    nodeId,
    type: "reports_cleared",
    owner: "admin_api",
    message: `${conditions} conditions and ${signals} readiness signals were cleared: ${reason}`,
  });
  return { conditions, signals };
}
