import { RESTORED } from "../../shared/health-report.ts";
import type { NodeId } from "../../shared/ids.ts";
import { readOpenSession } from "../db/queries/agent-sessions.ts";
import { lockOpenAllocation } from "../db/queries/allocations.ts";
import { readMaasSystemId } from "../db/queries/decommissions.ts";
import { listHealthOverrides } from "../db/queries/node-health-overrides.ts";
import { lockNode } from "../db/queries/nodes.ts";
import { lockOpenCase } from "../db/queries/repair-cases.ts";
import { operationOfNode } from "../db/queries/workflow-subjects.ts";
import type { AgentSession, PowerAction } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";
import { isClaimant } from "../repair/claim-repair.ts";

/**
 * Says whether a power action may continue: the session of the host's agent, or the reason why the action is over, for example that the instance has
 * ended.
 */
export type Standing =
  | { readonly stands: true; readonly session: AgentSession | null }
  | { readonly stands: false; readonly why: string };

const over = (why: string): Standing => ({ stands: false, why });

/** True after a restore of the database until a person has looked at the host, which may have another tenant than the older database says. */
export async function hasUnknownTenant(tx: Tx, nodeId: NodeId): Promise<boolean> {
  return (await listHealthOverrides(tx, [nodeId])).some(({ source }) => source === RESTORED);
}

/**
 * Checks before each step of a power action that the action still concerns the host and the tenant for which it was requested. While the allocation
 * ends or an operation holds the node, the only power action that continues is the one by which the hub switches the host on for its cleaning.
 * `standingOf` locks the node, so that no operation begins on it and no tenant gets it before the transaction ends.
 */
export async function standingOf(tx: Tx, action: PowerAction): Promise<Standing> {
  const node = await lockNode(tx, action.nodeId);
  if (node === null || node.status === "deleted") return over("The node was removed");
  if (node.generation !== action.generation) return over("The host was installed anew");
  if ((await readMaasSystemId(tx, node.id)) !== action.maasSystemId) return over("The node has another machine now");
  const allocation = await lockOpenAllocation(tx, node.id);
  if ((allocation?.id ?? null) !== action.allocationId)
    return over(action.allocationId === null ? "The node has a tenant now" : "The instance has ended");
  if (allocation?.status === "ending" && !action.forCleaning) return over("The instance ends");
  const holder = await operationOfNode(tx, node.id);
  if (holder !== null && !(action.forCleaning && holder === allocation?.decommissionId))
    return over(`Decommission ${holder} holds the node`);
  if (await hasUnknownTenant(tx, node.id))
    return over("The database was restored, and the host may have another tenant");
  const repair = await lockOpenCase(tx, node.id);
  if (repair?.state === "claimed" && !isClaimant(repair, { name: action.requestedBy, tenant: action.requesterTenant }))
    return over(`${repair.claimedBy} repairs the machine`);
  return { stands: true, session: await readOpenSession(tx, node.id, node.generation) };
}
