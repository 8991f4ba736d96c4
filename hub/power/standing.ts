import { readOpenSession } from "../db/queries/agent-sessions.ts";
import { readAllocation } from "../db/queries/allocations.ts";
import { readMaasSystemId } from "../db/queries/decommissions.ts";
import { lockNode } from "../db/queries/nodes.ts";
import { operationOfNode } from "../db/queries/workflow-subjects.ts";
import type { AgentSession, PowerAction } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";

/** The session of the host's agent, or the reason why an action does not continue: what it was asked for is over. */
export type Standing =
  | { readonly stands: true; readonly session: AgentSession | null }
  | { readonly stands: false; readonly why: string };

const over = (why: string): Standing => ({ stands: false, why });

/**
 * Checks before each step that the action still concerns the host and tenant of its request. While an operation holds the node, only the action that
 * switches a host on for its cleaning continues. The function locks the node, so that no operation begins on it before the transaction ends.
 */
export async function standingOf(tx: Tx, action: PowerAction): Promise<Standing> {
  const node = await lockNode(tx, action.nodeId);
  if (node === null || node.status === "deleted") return over("The node was removed");
  if (node.generation !== action.generation) return over("The host was installed anew");
  if ((await readMaasSystemId(tx, node.id)) !== action.maasSystemId) return over("The node has another machine now");
  const allocation = action.allocationId === null ? null : await readAllocation(tx, action.allocationId);
  if (action.allocationId !== null && (allocation === null || allocation.status === "ended"))
    return over("The instance has ended");
  const holder = await operationOfNode(tx, node.id);
  if (holder !== null && holder !== allocation?.decommissionId) return over(`Decommission ${holder} holds the node`);
  return { stands: true, session: await readOpenSession(tx, node.id, node.generation) };
}
