import type { NodeLocation } from "../../../shared/api/locations.ts";
import type { NodeId, SiteId, WorkflowId } from "../../../shared/ids.ts";
import type { NodeStatus } from "../../../shared/node-status.ts";
import { and, eq, inArray, isNull, ne, type SQL, sql } from "../orm.ts";
import { databaseRestores, type Node, nodeCertificates, nodes } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

export async function readNode(db: Db | Tx, nodeId: NodeId): Promise<Node | null> {
  const [node] = await db.select().from(nodes).where(eq(nodes.id, nodeId));
  return node ?? null;
}

/** Locks the node until the transaction ends, so that its generation and status cannot change during a decision. */
export async function lockNode(tx: Tx, nodeId: NodeId): Promise<Node | null> {
  const [node] = await tx.select().from(nodes).where(eq(nodes.id, nodeId)).for("no key update");
  return node ?? null;
}

export async function insertNode(tx: Tx, node: typeof nodes.$inferInsert): Promise<Node | null> {
  const [row] = await tx.insert(nodes).values(node).onConflictDoNothing({ target: nodes.id }).returning();
  return row ?? null;
}

export async function insertNodes(tx: Tx, all: readonly (typeof nodes.$inferInsert)[]): Promise<void> {
  await tx.insert(nodes).values([...all]);
}

/**
 * A node's next generation. Between a backup and its restore, nodes may have received generation numbers that the restored database does not contain.
 * After a restore, the hub must not give a node a generation number that was given out after the backup, because the agent of that generation keeps
 * its identity. After a restore of the database, a node's next generation is at least the number of minutes between the begin of 2026 and the newest
 * restore (decision I10). Two restores within one minute, or a database clock that was put back, may still give a node the same generation number
 * twice.
 */
const followingGeneration = sql`greatest(${nodes.generation} + 1,
  (select floor(extract(epoch from max(${databaseRestores.restoredAt}) - timestamptz '2026-01-01Z') / 60)::int from ${databaseRestores}))`;

/** After `nextGenerations`, the tokens, certificates and signals of the nodes' earlier generations no longer count. */
export async function nextGenerations(tx: Tx, nodeIds: readonly NodeId[]): Promise<void> {
  await tx
    .update(nodes)
    .set({ generation: followingGeneration, generationBeganAt: sql`now()`, updatedAt: sql`now()` })
    .where(sql`${nodes.id} = any(${sql.param([...nodeIds])}::uuid[])`);
}

/** Code calls `moveNode` instead of `setNodeStatus`, because `moveNode` also records the change of the node's status. */
export async function setNodeStatus(
  tx: Tx,
  nodeId: NodeId,
  move: {
    readonly from: NodeStatus;
    readonly to: NodeStatus;
    readonly operationId: string | null;
    readonly owner: string;
  },
): Promise<Node | null> {
  const [row] = await tx
    .update(nodes)
    .set({
      status: move.to,
      operationId: move.operationId,
      quarantinedBy: move.to === "quarantined" ? move.owner : null,
      updatedAt: sql`now()`,
    })
    .where(and(eq(nodes.id, nodeId), eq(nodes.status, move.from)))
    .returning();
  return row ?? null;
}

export async function setNodeOperation(tx: Tx, nodeId: NodeId, operationId: string): Promise<void> {
  await tx
    .update(nodes)
    .set({ operationId })
    .where(and(eq(nodes.id, nodeId), inArray(nodes.status, ["draining", "removing"])));
}

export async function ownQuarantine(tx: Tx, nodeId: NodeId, owner: "operator" | "cleanup" = "operator"): Promise<void> {
  await tx
    .update(nodes)
    .set({ quarantinedBy: owner })
    .where(and(eq(nodes.id, nodeId), eq(nodes.status, "quarantined")));
}

export async function setNodeCordon(
  tx: Tx,
  nodeId: NodeId,
  cordon: Pick<Node, "cordonReason" | "cordonOwner">,
  where: SQL | undefined,
): Promise<Pick<Node, "hostname"> | null> {
  const [row] = await tx
    .update(nodes)
    .set({ ...cordon, updatedAt: sql`now()` })
    .where(and(eq(nodes.id, nodeId), where))
    .returning({ hostname: nodes.hostname });
  return row ?? null;
}

/** After `nextGeneration`, the tokens, certificates and signals of earlier generations no longer count. */
export async function nextGeneration(tx: Tx, nodeId: NodeId): Promise<number> {
  const [row] = await tx
    .update(nodes)
    .set({ generation: followingGeneration, generationBeganAt: sql`now()`, updatedAt: sql`now()` })
    .where(eq(nodes.id, nodeId))
    .returning({ generation: nodes.generation });
  if (row === undefined) throw new Error(`node ${nodeId} is gone`);
  return row.generation;
}

export async function setGeneration(tx: Tx, nodeId: NodeId, generation: number): Promise<void> {
  await tx
    .update(nodes)
    .set({
      generation,
      generationBeganAt: sql`case when ${nodes.generation} = ${generation} then ${nodes.generationBeganAt} else now() end`,
      updatedAt: sql`now()`,
    })
    .where(eq(nodes.id, nodeId));
}

export async function setNodeMode(
  tx: Tx,
  nodeId: NodeId,
  mode: Pick<Node, "onboardingMode" | "siteId">,
): Promise<void> {
  await tx
    .update(nodes)
    .set({ ...mode, updatedAt: sql`now()` })
    .where(eq(nodes.id, nodeId));
}

/** Stores who runs the network of a node's host, and whether the host runs an agent. */
export async function setHostFacts(
  tx: Tx,
  nodeId: NodeId,
  facts: Pick<Node, "networkOwnedBy" | "runsAgent">,
): Promise<void> {
  await tx
    .update(nodes)
    .set({ ...facts, updatedAt: sql`now()` })
    .where(eq(nodes.id, nodeId));
}

export async function setNodeHost(tx: Tx, nodeId: NodeId, host: string): Promise<void> {
  await tx.update(nodes).set({ host, updatedAt: sql`now()` }).where(eq(nodes.id, nodeId));
}

/** If the caller gives neither a location nor an asset tag, `setNodeLocation` only raises the version of the node's location. */
export async function setNodeLocation(
  tx: Tx,
  nodeId: NodeId,
  location: Partial<NodeLocation & Pick<Node, "assetTag">>,
): Promise<Node | null> {
  const [node] = await tx
    .update(nodes)
    .set({ ...location, locationVersion: sql`${nodes.locationVersion} + 1`, updatedAt: sql`now()` })
    .where(eq(nodes.id, nodeId))
    .returning();
  return node ?? null;
}

/** Gives a node the location that the request for its onboarding named; a request without a location changes nothing. */
export async function takeLocationOfOnboarding(tx: Tx, nodeId: NodeId, id: WorkflowId): Promise<void> {
  await tx.execute(sql`
    update nodes n set room = o.room, rack = o.rack, unit = o.unit, location_version = location_version + 1, updated_at = now()
    from node_onboardings o
    where n.id = ${nodeId} and o.onboarding_id = ${id} and (o.room is not null or o.rack is not null)`);
}

/** A node with its place and asset tag after a request, which changed them or found them so. */
export interface PlacedNode extends NodeLocation, Pick<Node, "id" | "hostname" | "assetTag"> {
  readonly isChanged: boolean;
}

export interface PlacedHost extends NodeLocation {
  readonly hostname: string;
  /** null removes the asset tag; if `asset_tag` is left out, the node keeps its asset tag. */
  readonly asset_tag?: string | null | undefined;
}

/** Sets the locations and asset tags of a site's nodes by their hostnames in one statement, and returns the nodes that the site has. */
export async function setLocationsByHostname(
  tx: Tx,
  siteId: SiteId,
  hosts: readonly PlacedHost[],
): Promise<PlacedNode[]> {
  const { rows } = await tx.execute<PlacedNode & Record<string, unknown>>(sql`
    with given as (
      select g.*, item ? 'asset_tag' as is_tagged from jsonb_array_elements(${JSON.stringify(hosts)}::jsonb) item
        cross join lateral jsonb_to_record(item) as g (hostname text, room text, rack text, unit int, asset_tag text)),
    found as (
      select n.id, n.hostname, g.room, g.rack, g.unit, case when g.is_tagged then g.asset_tag else n.asset_tag end as asset_tag
      from nodes n join given g on g.hostname = n.hostname
      where n.site_id = ${siteId} and n.status <> 'deleted' order by n.id for no key update of n),
    changed as (
      update nodes n set room = f.room, rack = f.rack, unit = f.unit, asset_tag = f.asset_tag,
        location_version = location_version + 1, updated_at = now()
      from found f
      where n.id = f.id and (n.room, n.rack, n.unit, n.asset_tag) is distinct from (f.room, f.rack, f.unit, f.asset_tag)
      returning n.id)
    select f.id, f.hostname, f.room, f.rack, f.unit, f.asset_tag as "assetTag", c.id is not null as "isChanged"
    from found f left join changed c on c.id = f.id`);
  return rows;
}

/**
 * Deletes the row of a node that never enrolled. `deleteNodeThatNeverEnrolled` keeps the row of a node that has enrolled, for the host's next
 * onboarding.
 */
export async function deleteNodeThatNeverEnrolled(tx: Tx, nodeId: NodeId): Promise<boolean> {
  const rows = await tx
    .delete(nodes)
    .where(
      and(
        eq(nodes.id, nodeId),
        inArray(nodes.status, ["enrolling"]),
        sql`not exists (select 1 from ${nodeCertificates} c where c.node_id = ${nodes.id})`,
      ),
    )
    .returning({ id: nodes.id });
  return rows.length > 0;
}

export const listLivingNodes = (
  tx: Tx,
  siteId: SiteId,
  hostnames: readonly string[],
): Promise<Pick<Node, "id" | "hostname" | "status" | "onboardingMode">[]> =>
  tx
    .select({ id: nodes.id, hostname: nodes.hostname, status: nodes.status, onboardingMode: nodes.onboardingMode })
    .from(nodes)
    .where(and(eq(nodes.siteId, siteId), inArray(nodes.hostname, [...hostnames]), ne(nodes.status, "deleted")));

export async function listLivingNodeIds(tx: Tx): Promise<NodeId[]> {
  const rows = await tx.select({ id: nodes.id }).from(nodes).where(ne(nodes.status, "deleted"));
  return rows.map(({ id }) => id);
}

/** Returns the node with the given hostname at the site `siteId` that is not deleted; null as `siteId` means a node without a site. */
export async function findLivingNode(tx: Tx, hostname: string, siteId: SiteId | null): Promise<Node | null> {
  const sameSite = siteId === null ? isNull(nodes.siteId) : eq(nodes.siteId, siteId);
  const [node] = await tx
    .select()
    .from(nodes)
    .where(and(eq(nodes.hostname, hostname), sameSite, ne(nodes.status, "deleted")));
  return node ?? null;
}
