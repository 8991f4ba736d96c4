import type { NodeId, SiteId } from "../../../shared/ids.ts";
import { and, count, desc, eq, inArray, isNotNull, ne, sql } from "../orm.ts";
import { maasSites, type Node, nodeMaasState, nodeOnboardings, nodes } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { followBindings } from "./maas-machines.ts";

/** A node that is bound to a machine in MAAS. Each machine has at most one node that is not deleted, and a deleted node has no machine. */
export type BoundNode = Pick<Node, "id" | "hostname" | "status"> & { readonly ipmiIp: string };

const bound = { id: nodes.id, hostname: nodes.hostname, status: nodes.status, ipmiIp: nodeMaasState.ipmiIp };

/** Other nodes bound to a machine with this system id, at any site. Two MAAS regions may use the same system id. */
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

/** The site's nodes whose machines have one of these BMC addresses. */
export async function nodesOfBmcs(db: Db | Tx, siteId: SiteId, ipmiIps: readonly string[]): Promise<BoundNode[]> {
  return db
    .select(bound)
    .from(nodeMaasState)
    .innerJoin(nodes, eq(nodes.id, nodeMaasState.nodeId))
    .where(
      and(eq(nodeMaasState.siteId, siteId), inArray(nodeMaasState.ipmiIp, [...ipmiIps]), ne(nodes.status, "deleted")),
    );
}

/** How many nodes of the site are bound to a machine. */
export async function countBoundNodes(tx: Db | Tx, siteId: SiteId): Promise<number> {
  const [row] = await tx
    .select({ bound: count() })
    .from(nodeMaasState)
    .innerJoin(nodes, eq(nodes.id, nodeMaasState.nodeId))
    .where(and(eq(nodeMaasState.siteId, siteId), ne(nodes.status, "deleted")));
  return row?.bound ?? 0;
}

/**
 * Binds the node to this machine only. A binding that a deleted node left behind, e.g. one that an older hub removed, is deleted. The caller has
 * checked that no other node is bound to the machine. The machine's last known state is copied to the node at once.
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
  // If the machine no longer changes, no later poll would copy its state.
  await followBindings(tx, binding.siteId, [binding.maasSystemId]);
}

/** The state of an earlier machine, or of an earlier system on this machine, says nothing about the node now. */
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

/** Removes the node's binding, so that the machine is free for another node. */
export async function unbindNode(tx: Tx, nodeId: NodeId): Promise<void> {
  await tx.delete(nodeMaasState).where(eq(nodeMaasState.nodeId, nodeId));
}

/** The machine of the node's last onboarding that found one. Null if none has found one. */
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

/** The node that the machine's last onboarding created, even if it is no longer bound to the machine. */
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
