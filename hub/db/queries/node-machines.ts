import type { NodeId, SiteId } from "../../../shared/ids.ts";
import { MAAS_STATUS } from "../../../shared/maas-status.ts";
import { and, count, desc, eq, inArray, isNotNull, ne, sql } from "../orm.ts";
import { maasSites, type Node, type NodeMaasState, nodeMaasState, nodeOnboardings, nodes } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

/** A node that is bound to a machine in MAAS; a machine has at most one node that is not deleted. */
export type BoundNode = Pick<Node, "id" | "hostname" | "status"> & { readonly ipmiIp: string };

const bound = { id: nodes.id, hostname: nodes.hostname, status: nodes.status, ipmiIp: nodeMaasState.ipmiIp };

/**
 * Returns the nodes, at any site and except `nodeId`, that are bound to a machine with the given system id. The search covers all sites, because two
 * MAAS regions may use the same system id for different machines.
 */
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

export async function nodesOfBmcs(db: Db | Tx, siteId: SiteId, ipmiIps: readonly string[]): Promise<BoundNode[]> {
  return db
    .select(bound)
    .from(nodeMaasState)
    .innerJoin(nodes, eq(nodes.id, nodeMaasState.nodeId))
    .where(
      and(eq(nodeMaasState.siteId, siteId), inArray(nodeMaasState.ipmiIp, [...ipmiIps]), ne(nodes.status, "deleted")),
    );
}

/** Returns the site's nodes, except `nodeId`, whose machines had the BMC address `address` at their onboarding. */
export async function otherNodesAtBmc(
  db: Db | Tx,
  siteId: SiteId,
  nodeId: NodeId,
  address: string,
): Promise<(BoundNode & { readonly systemId: string })[]> {
  return db
    .select({ ...bound, systemId: nodeMaasState.maasSystemId })
    .from(nodeMaasState)
    .innerJoin(nodes, eq(nodes.id, nodeMaasState.nodeId))
    .where(
      and(
        eq(nodeMaasState.siteId, siteId),
        eq(nodeMaasState.ipmiIp, address),
        ne(nodeMaasState.nodeId, nodeId),
        ne(nodes.status, "deleted"),
      ),
    );
}

export async function countBoundNodes(tx: Db | Tx, siteId: SiteId): Promise<number> {
  const [row] = await tx
    .select({ bound: count() })
    .from(nodeMaasState)
    .innerJoin(nodes, eq(nodes.id, nodeMaasState.nodeId))
    .where(and(eq(nodeMaasState.siteId, siteId), ne(nodes.status, "deleted")));
  return row?.bound ?? 0;
}

/**
 * Binds the node to one machine and ends the node's binding to any other machine. `bindNodeToMachine` deletes a binding of a deleted node to the
 * machine, which an older hub may have left. The caller of `bindNodeToMachine` has checked that no other node is bound to the machine.
 * `bindNodeToMachine` copies the machine's last known state to the node at once.
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
  // When a node is bound to a machine, the hub copies the machine's state at once, because later polls of MAAS copy only changes.
  await followBindings(tx, binding.siteId, [binding.maasSystemId]);
}

/**
 * Binds nodes without a machine to machines with a fixed number of statements. `bindNodesToMachines` removes the binding of a deleted node to one of
 * the machines, which a hub of an older version may have left.
 */
export async function bindNodesToMachines(
  tx: Tx,
  siteId: SiteId,
  all: readonly {
    readonly nodeId: NodeId;
    readonly systemId: string;
    readonly owner: string | null;
    readonly ipmiIp: string;
  }[],
): Promise<void> {
  const systemIds = all.map((one) => one.systemId);
  await tx.execute(sql`
    delete from node_maas_state s using nodes n
    where s.site_id = ${siteId} and s.maas_system_id = any(${sql.param(systemIds)}::text[])
      and n.id = s.node_id and n.status = 'deleted'`);
  await tx.insert(nodeMaasState).values(
    all.map(({ nodeId, systemId, owner, ipmiIp }) => ({
      nodeId,
      siteId,
      maasSystemId: systemId,
      ipmiIp,
      maasOwner: owner,
    })),
  );
  await followBindings(tx, siteId, systemIds);
}

/** The state of a node's former machine, or of a former system on the node's machine, says nothing about the node now. */
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

/** Removes the node's binding to its machine, so that the machine is free for another node. */
export async function unbindNode(tx: Tx, nodeId: NodeId): Promise<void> {
  await tx.delete(nodeMaasState).where(eq(nodeMaasState.nodeId, nodeId));
}

/**
 * Copies the state of machines into the rows of `node_maas_state`, which the reconciler judges later (lifecycle 6.5). `followBindings` writes the row
 * of a node with an unchanged machine only if the row differs from the machine's state. A node may be bound to a machine during the poll that saw the
 * machine change, so later polls compare unchanged machines too.
 */
export async function followBindings(
  tx: Tx,
  siteId: SiteId,
  systemIds: readonly string[],
  seen: readonly string[] = [],
): Promise<NodeId[]> {
  if (systemIds.length + seen.length === 0) return [];
  const status = sql`case when m.absent then 'absent' else m.status_name end`;
  const { rows } = await tx.execute<{ node_id: NodeId }>(sql`
    with bound as (
      select n.node_id from node_maas_state n join maas_machines m on m.site_id = n.site_id and m.system_id = n.maas_system_id
      where n.site_id = ${siteId}::uuid and (n.maas_system_id = any(${sql.param([...systemIds])}::text[])
        or (n.maas_system_id = any(${sql.param([...seen])}::text[])
          and (n.last_maas_status, n.last_maas_power_state, n.last_maas_ips) is distinct from (${status}, m.power_state, m.ip_addresses)))
      order by n.node_id for update of n)
    update node_maas_state n set
      last_maas_status = ${status},
      last_maas_power_state = m.power_state,
      last_maas_ips = m.ip_addresses,
      reconcile_due_at = clock_timestamp()
    from bound, maas_machines m
    where n.node_id = bound.node_id and m.site_id = n.site_id and m.system_id = n.maas_system_id
    returning n.node_id`);
  return rows.map((row) => row.node_id);
}

/** Asks the reconciler to judge the node's machine once more, e.g. because the node's new status changes what the machine's state means. */
export async function judgeMachineAgain(tx: Tx, nodeId: NodeId): Promise<void> {
  await tx
    .update(nodeMaasState)
    .set({ reconcileDueAt: sql`clock_timestamp()` })
    .where(eq(nodeMaasState.nodeId, nodeId));
}

/**
 * Stores the MAAS owner of each machine whose node has come into service, and the new name of a renamed owner. A new owner name of a machine counts
 * as a rename if it is the present name of the hub's own MAAS user and the stored name is a former name of this user. If the node's agent made
 * contact after the machine changed in MAAS, a new owner name of the machine counts as a rename.
 */
export async function rememberOwners(
  tx: Tx,
  siteId: SiteId,
  user: { readonly name: string; readonly formerNames: readonly string[] },
): Promise<void> {
  await tx.execute(sql`
    update node_maas_state s set maas_owner = m.owner
    from nodes n, maas_machines m
    where s.site_id = ${siteId} and s.maas_owner is distinct from m.owner and n.id = s.node_id and n.status in ('active', 'offline')
      and m.site_id = s.site_id and m.system_id = s.maas_system_id and m.status = ${MAAS_STATUS.deployed} and not m.absent and m.owner is not null
      and (s.maas_owner is null or (m.owner = ${user.name} and s.maas_owner = any(${sql.param([...user.formerNames])}::text[])) or exists (select from agent_sessions a
        where a.node_id = n.id and a.generation = n.generation and a.last_seen_at > m.observed_at))`);
}

/**
 * Clears the stored MAAS owners of retired nodes whose machines are gone or no longer deployed. While no MAAS owner is stored for the machine of a
 * retired node, Muster does not release a system that somebody deploys on the machine later.
 */
export async function forgetOwners(tx: Tx, siteId: SiteId): Promise<void> {
  await tx.execute(sql`
    update node_maas_state s set maas_owner = null
    from nodes n, maas_machines m
    where s.site_id = ${siteId} and s.maas_owner is not null and n.id = s.node_id and n.status = 'retired'
      and m.site_id = s.site_id and m.system_id = s.maas_system_id and (m.status <> ${MAAS_STATUS.deployed} or m.absent)`);
}

/** A node stays due for the reconciler if its facts changed after the reconciler read them. */
export async function markReconciled(
  tx: Tx,
  siteId: SiteId,
  judged: readonly Pick<NodeMaasState, "nodeId" | "reconcileDueAt">[],
  scope: "due" | "all",
): Promise<void> {
  const due = judged.filter((one) => one.reconcileDueAt !== null);
  if (due.length > 0)
    await tx.execute(sql`
      update node_maas_state s set reconcile_due_at = null, last_reconciled_at = now()
      from unnest(${sql.param(due.map((one) => one.nodeId))}::uuid[], ${sql.param(due.map((one) => one.reconcileDueAt?.toISOString()))}::timestamptz[]) as read(node_id, due_at)
      where s.node_id = read.node_id and date_trunc('milliseconds', s.reconcile_due_at) = read.due_at`);
  if (scope === "all")
    await tx
      .update(nodeMaasState)
      .set({ lastReconciledAt: sql`now()` })
      .where(
        and(
          eq(nodeMaasState.siteId, siteId),
          sql`${nodeMaasState.nodeId} in (select m.node_id from node_maas_state m join maas_machines o on o.site_id = m.site_id and o.system_id = m.maas_system_id where m.site_id = ${siteId})`,
        ),
      );
}

export type DriftChange = Partial<
  Pick<NodeMaasState, "driftDetected" | "driftDetails" | "driftAcknowledged" | "maasOwner">
> & {
  readonly resolved?: boolean;
  /** True if the reconciler begins a quarantine of the node; false if the reconciler ends its own quarantine. */
  readonly quarantined?: boolean;
};

export async function writeDrift(
  tx: Tx,
  nodeId: NodeId,
  { resolved, quarantined, ...change }: DriftChange,
): Promise<void> {
  const nowIf = (yes: boolean) => (yes ? sql`now()` : null);
  await tx
    .update(nodeMaasState)
    .set({
      ...change,
      ...(resolved === undefined ? {} : { driftResolvedAt: nowIf(resolved) }),
      ...(quarantined === undefined ? {} : { quarantinedAt: nowIf(quarantined) }),
    })
    .where(eq(nodeMaasState.nodeId, nodeId));
}

/** Returns the machine of the node's last onboarding that found a machine, or null if no onboarding found one. */
export async function lastMachineOf(
  db: Db | Tx,
  nodeId: NodeId,
): Promise<{
  readonly siteId: SiteId;
  readonly systemId: string;
  readonly ipmiIp: string;
  readonly pxeMac: string | null;
} | null> {
  const [row] = await db
    .select({
      siteId: nodeOnboardings.siteId,
      systemId: sql<string>`${nodeOnboardings.maasSystemId}`,
      ipmiIp: nodeOnboardings.ipmiIp,
      pxeMac: nodeOnboardings.pxeMac,
    })
    .from(nodeOnboardings)
    .where(and(eq(nodeOnboardings.nodeId, nodeId), isNotNull(nodeOnboardings.maasSystemId)))
    .orderBy(desc(nodeOnboardings.createdAt))
    .limit(1);
  return row ?? null;
}

/** Returns the node of the machine's last onboarding, even if the node is no longer bound to the machine. */
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

export type BoundMachine = Pick<NodeMaasState, "maasSystemId" | "ipmiIp">;

/** Returns the machines of the nodes. The map that `readBoundMachines` returns has no entry for a node without a machine. */
export async function readBoundMachines(
  db: Db | Tx,
  ids: readonly NodeId[],
): Promise<ReadonlyMap<NodeId, BoundMachine>> {
  const rows = await db
    .select({ nodeId: nodeMaasState.nodeId, maasSystemId: nodeMaasState.maasSystemId, ipmiIp: nodeMaasState.ipmiIp })
    .from(nodeMaasState)
    .where(inArray(nodeMaasState.nodeId, [...ids]));
  return new Map(rows.map(({ nodeId, ...machine }) => [nodeId, machine]));
}
