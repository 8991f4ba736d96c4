import type { NodeId, SiteId } from "../../../shared/ids.ts";
import { MAAS_STATUS } from "../../../shared/maas-status.ts";
import type { NodeStatus } from "../../../shared/node-status.ts";
import { eq, sql } from "../orm.ts";
import { type Node, type NodeAdoption, nodeAdoptions } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { writeOwnConditions } from "./node-conditions.ts";
import { bindNodesToMachines, unbindNode } from "./node-machines.ts";
import { insertNodes, setNodeMode } from "./nodes.ts";

export interface NewAdoption {
  readonly node: Pick<Node, "id" | "hostname" | "siteId" | "sku" | "gpusTotal" | "regionCode" | "host">;
  readonly adoption: Omit<NodeAdoption, "nodeId" | "createdAt">;
  readonly machine: { readonly systemId: string; readonly owner: string | null; readonly ipmiIp: string };
}

/**
 * Writes the nodes of an adoption, their bindings to machines and the conditions that say that their agents are missing, by a fixed number of
 * statements.
 */
export async function insertAdoptions(
  tx: Tx,
  siteId: SiteId,
  all: readonly NewAdoption[],
  condition: Parameters<typeof writeOwnConditions>[2],
): Promise<void> {
  if (all.length === 0) return;
  await insertNodes(
    tx,
    all.map(({ node }) => ({
      ...node,
      status: "bootstrap_issued" as const,
      onboardingMode: "adopted" as const,
    })),
  );
  await tx.insert(nodeAdoptions).values(all.map(({ node, adoption }) => ({ ...adoption, nodeId: node.id })));
  await writeOwnConditions(
    tx,
    all.map(({ node }) => node.id),
    condition,
  );
  await bindNodesToMachines(
    tx,
    siteId,
    all.map(({ node, machine }) => ({ ...machine, nodeId: node.id })),
  );
}

/** Writes the adoption and the machine binding of a node of manual mode that a request binds to its machine. The caller has locked the node. */
export async function insertBinding(
  tx: Tx,
  nodeId: NodeId,
  adoption: Omit<NodeAdoption, "nodeId" | "createdAt">,
  machine: NewAdoption["machine"],
): Promise<void> {
  await setNodeMode(tx, nodeId, { onboardingMode: "adopted", siteId: adoption.siteId });
  await tx.insert(nodeAdoptions).values({ ...adoption, nodeId });
  await bindNodesToMachines(tx, adoption.siteId, [{ ...machine, nodeId }]);
}

/** Undoes a node's binding to its machine, so that the node is again a node of manual mode without a machine. The node keeps its site. */
export async function deleteBinding(tx: Tx, { nodeId, siteId }: NodeAdoption): Promise<void> {
  await unbindNode(tx, nodeId);
  await tx.delete(nodeAdoptions).where(eq(nodeAdoptions.nodeId, nodeId));
  await setNodeMode(tx, nodeId, { onboardingMode: "manual", siteId });
}

export async function readAdoption(db: Db | Tx, nodeId: NodeId): Promise<NodeAdoption | null> {
  const [row] = await db.select().from(nodeAdoptions).where(eq(nodeAdoptions.nodeId, nodeId));
  return row ?? null;
}

const wasReleased = (nodeId: ReturnType<typeof sql>) =>
  sql<boolean>`exists (select from node_decommissions d where d.node_id = ${nodeId} and d.released_generation is not null)`;

/**
 * SQL that is true for a node `n` whose present system ran before Muster knew the host, so that nobody knows who used the system. Once Muster has
 * released the machine of an adopted node, the node's past no longer counts as unknown, because the next deploy installs another system.
 */
export const pastIsUnknown = (nodeId: ReturnType<typeof sql>) => sql<boolean>`(exists (
  select from node_adoptions a where a.node_id = ${nodeId} and a.past_unknown and not ${wasReleased(sql`a.node_id`)})
  or coalesce((select e.adopted from external_attempts e where e.node_id = ${nodeId} order by e.number desc limit 1), false))`;

/** SQL for the ids of all nodes whose present system ran before Muster knew the host, so that nobody knows who used the system. */
export const nodesOfUnknownPast = sql`(
  select a.node_id from node_adoptions a where a.past_unknown and not ${wasReleased(sql`a.node_id`)}
  union all select e.node_id from external_attempts e where e.adopted and not exists (
    select from external_attempts newer where newer.node_id = e.node_id and newer.number > e.number))`;

/** True if Muster has released the node's machine, so that the host no longer runs the system of the time before the adoption. */
export async function hasReleasedMachine(tx: Tx, nodeId: NodeId): Promise<boolean> {
  const { rows } = await tx.execute<{ released: boolean }>(
    sql`select ${wasReleased(sql`${nodeId}::uuid`)} as released`,
  );
  return rows[0]?.released === true;
}

export async function hasUnknownPast(db: Db | Tx, nodeId: NodeId): Promise<boolean> {
  const { rows } = await db.execute<{ unknown: boolean }>(
    sql`select ${pastIsUnknown(sql`${nodeId}::uuid`)} as unknown`,
  );
  return rows[0]?.unknown === true;
}

export interface WaitingHost {
  readonly nodeId: NodeId;
  readonly hostname: string;
  readonly host: string | null;
  readonly status: NodeStatus;
  readonly systemId: string;
  readonly macs: readonly string[];
  /** True if the node's machine is Deployed, so that its host may run a command. */
  readonly deployed: boolean;
}

/**
 * Locks adopted nodes of a site that are not in service yet: those in `only`, or else those without a valid enrollment token whose agent is missing
 * or was refused.
 */
export async function lockWaitingHosts(tx: Tx, siteId: SiteId, only: readonly NodeId[] | null): Promise<WaitingHost[]> {
  const named = sql`n.id = any(${sql.param([...(only ?? [])])}::uuid[])`;
  const without = sql`(n.status = 'bootstrap_issued' or exists (select from node_conditions c
      where c.node_id = n.id and c.type = 'adoption.identity' and c.status = 'False'))
    and not exists (select from enrollment_tokens t
      where t.node_id = n.id and t.used_at is null and t.revoked_at is null and t.expires_at > now())`;
  const { rows } = await tx.execute<Record<keyof WaitingHost, unknown>>(sql`
    select n.id as "nodeId", n.hostname, n.host, n.status, s.maas_system_id as "systemId",
      array(select jsonb_array_elements_text(case when jsonb_typeof(m.details -> 'macs') = 'array' then m.details -> 'macs' else '[]' end)) as macs,
      m.status = ${MAAS_STATUS.deployed} and not m.absent as deployed
    from nodes n
    join node_maas_state s on s.node_id = n.id and s.site_id = ${siteId}::uuid
    join maas_machines m on m.site_id = s.site_id and m.system_id = s.maas_system_id
    where n.onboarding_mode = 'adopted' and n.status in ('bootstrap_issued', 'enrolling') and ${only === null ? without : named}
    order by n.id for no key update of n`);
  return rows as unknown as WaitingHost[];
}
