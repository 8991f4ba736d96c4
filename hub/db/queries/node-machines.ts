import type { NodeId, SiteId } from "../../../shared/ids.ts";
import { and, count, desc, eq, inArray, isNotNull, ne, sql } from "../orm.ts";
import { maasSites, type Node, nodeMaasState, nodeOnboardings, nodes } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { followBindings } from "./maas-machines.ts";

/** Which node is which machine in MAAS. A machine is at most one node that is not deleted; a deleted node is none. */
export type BoundNode = Pick<Node, "id" | "hostname" | "status"> & { readonly ipmiIp: string };

const bound = { id: nodes.id, hostname: nodes.hostname, status: nodes.status, ipmiIp: nodeMaasState.ipmiIp };

/** Nodes other than this one that are a machine of this system id, at whatever site: two regions may give out the same one. */
export async function otherNodesOfSystemId(
  db: Db | Tx,
  nodeId: NodeId,
  systemId: string,
): Promise<(BoundNode & { readonly siteId: SiteId; readonly siteName: string })[]> {
  return db
    .select({ ...bound, siteId: nodeMaasState.siteId, siteName: maasSites.name })
    .from(nodeMaasState)
    .innerJoin(nodes, eq(nodes.id, nodeMaasState.nodeId))
    .innerJoin(maasSites, eq(maasSites.id, nodeMaasState.siteId))
    .where(
      and(eq(nodeMaasState.maasSystemId, systemId), ne(nodeMaasState.nodeId, nodeId), ne(nodes.status, "deleted")),
    );
}

/** The nodes whose machines have one of these BMCs. */
export async function nodesOfBmcs(db: Db | Tx, siteId: SiteId, ipmiIps: readonly string[]): Promise<BoundNode[]> {
  return db
    .select(bound)
    .from(nodeMaasState)
    .innerJoin(nodes, eq(nodes.id, nodeMaasState.nodeId))
    .where(
      and(eq(nodeMaasState.siteId, siteId), inArray(nodeMaasState.ipmiIp, [...ipmiIps]), ne(nodes.status, "deleted")),
    );
}

/** How many nodes are machines of the site. */
export async function countBoundNodes(tx: Db | Tx, siteId: SiteId): Promise<number> {
  const [row] = await tx
    .select({ bound: count() })
    .from(nodeMaasState)
    .innerJoin(nodes, eq(nodes.id, nodeMaasState.nodeId))
    .where(and(eq(nodeMaasState.siteId, siteId), ne(nodes.status, "deleted")));
  return row?.bound ?? 0;
}

/**
 * Binds the node to its machine, and to no other any more. A binding that a deleted node has left, e.g. one that an older hub removed, is
 * dropped. The caller has seen that no other node is the machine. What was last seen of the machine is known of the node at once.
 */
export async function bindNodeToMachine(
  tx: Tx,
  binding: { nodeId: NodeId; siteId: SiteId; maasSystemId: string; ipmiIp: string },
): Promise<void> {
  await tx
    .delete(nodeMaasState)
    .where(
      and(
        eq(nodeMaasState.siteId, binding.siteId),
        eq(nodeMaasState.maasSystemId, binding.maasSystemId),
        sql`${nodeMaasState.nodeId} in (select n.id from ${nodes} n where n.status = 'deleted')`,
      ),
    );
  await tx
    .insert(nodeMaasState)
    .values(binding)
    .onConflictDoUpdate({
      target: nodeMaasState.nodeId,
      set: { siteId: binding.siteId, maasSystemId: binding.maasSystemId, ipmiIp: binding.ipmiIp, ...UNKNOWN },
    });
  // A machine that does not change any more is told of by nobody.
  await followBindings(tx, binding.siteId, [binding.maasSystemId]);
}

/** What was known of another machine, or of an earlier system on this one, says nothing of what the node is now. */
const UNKNOWN = {
  maasOwner: null,
  lastMaasStatus: null,
  lastMaasPowerState: null,
  lastMaasIps: null,
  lastReconciledAt: null,
  driftDetected: false,
  driftDetails: null,
  driftResolvedAt: null,
  driftAcknowledged: null,
  quarantinedAt: null,
} as const;

/** The machine is free for another node. */
export async function unbindNode(tx: Tx, nodeId: NodeId): Promise<void> {
  await tx.delete(nodeMaasState).where(eq(nodeMaasState.nodeId, nodeId));
}

/** The machine that the node was last, by the onboardings that brought it in; null where none has found one. */
export async function lastMachineOf(
  db: Db | Tx,
  nodeId: NodeId,
): Promise<{ readonly siteId: SiteId; readonly systemId: string; readonly ipmiIp: string } | null> {
  const [row] = await db
    .select({
      siteId: nodeOnboardings.siteId,
      systemId: sql<string>`${nodeOnboardings.maasSystemId}`,
      ipmiIp: nodeOnboardings.ipmiIp,
    })
    .from(nodeOnboardings)
    .where(and(eq(nodeOnboardings.nodeId, nodeId), isNotNull(nodeOnboardings.maasSystemId)))
    .orderBy(desc(nodeOnboardings.createdAt))
    .limit(1);
  return row ?? null;
}

/** The node that a machine was made last, whether or not it is one still. */
export async function lastNodeOfMachine(
  db: Db | Tx,
  siteId: SiteId,
  systemId: string,
): Promise<Pick<Node, "id" | "hostname" | "status" | "generation"> | null> {
  const [row] = await db
    .select({ id: nodes.id, hostname: nodes.hostname, status: nodes.status, generation: nodes.generation })
    .from(nodeOnboardings)
    .innerJoin(nodes, eq(nodes.id, nodeOnboardings.nodeId))
    .where(and(eq(nodeOnboardings.siteId, siteId), eq(nodeOnboardings.maasSystemId, systemId)))
    .orderBy(desc(nodeOnboardings.createdAt))
    .limit(1);
  return row ?? null;
}
