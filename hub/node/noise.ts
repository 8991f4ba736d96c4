import type { NodeId } from "../../shared/ids.ts";
import { removeConditions, writeOwnCondition } from "../db/queries/node-conditions.ts";
import { hadRecently, recordNodeEvent } from "../db/queries/node-events.ts";
import { readNode } from "../db/queries/nodes.ts";
import type { Tx } from "../db/tx.ts";

const NOISY = "agent.noisy";
/**
 * The smallest number of minutes between two events of the type `agent_noisy` for one node. A host is noisy if, for a long time, its agent sends more
 * requests or bytes than the hub allows.
 */
const EVENT_EVERY_MINUTES = 10;

/**
 * Records whether a node's host is noisy, which means that its agent sends more requests or bytes than the hub allows. For a noisy host, the hub sets
 * a condition of the node, and records the beginning of the noise as an event.
 */
export async function writeNoise(
  tx: Tx,
  { nodeId, noisy, kind }: { readonly nodeId: NodeId; readonly noisy: boolean; readonly kind: string },
): Promise<void> {
  const node = await readNode(tx, nodeId);
  if (node === null || node.status === "deleted") return;
  if (!noisy) {
    await removeConditions(tx, nodeId, NOISY);
    return;
  }
  const message = `Its host sends more than the hub allows (${kind}), so the hub delays and disconnects it. Look for a fault or an intruder on the host; if necessary revoke its certificates.`;
  await writeOwnCondition(tx, node, { type: NOISY, status: "True", reason: "OverBudget", message });
  if (await hadRecently(tx, nodeId, "agent_noisy", EVENT_EVERY_MINUTES)) return;
  await recordNodeEvent(tx, { nodeId, type: "agent_noisy", owner: "gateway", message, details: { kind } });
}
