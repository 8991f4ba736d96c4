import type { NodeId, SiteId, WorkflowId } from "../../../shared/ids.ts";
import { and, eq, isNull, ne, sql } from "../orm.ts";
import { maasSites, nodeMaasState, nodeOnboardings, nodes, workflows } from "../schema/index.ts";
import type { Db } from "../tx.ts";

/** What the onboarding has on record of it; null or JSON null where none has begun. */
const discovery = sql`${workflows.state} -> 'discovery'`;

/**
 * Onboardings of the site other than this one that look for their host, or have booted it since then, and have found no machine: what their host makes of
 * it may come late. One that a person has resumed may boot its host again.
 */
export async function otherDiscoveries(
  db: Db,
  { id, siteId, since }: { readonly id: WorkflowId; readonly siteId: SiteId; readonly since: Date },
): Promise<{ id: WorkflowId; hostname: string }[]> {
  return db
    .select({ id: workflows.id, hostname: nodeOnboardings.hostname })
    .from(workflows)
    .innerJoin(nodeOnboardings, eq(nodeOnboardings.onboardingId, workflows.id))
    .where(
      and(
        eq(workflows.siteId, siteId),
        ne(workflows.id, id),
        isNull(nodeOnboardings.maasSystemId),
        sql`(${workflows.status} in ('pending', 'running') or greatest(
          (${discovery} ->> 'triggered_at')::timestamptz, (${discovery} ->> 'booted_at')::timestamptz)
          >= ${since.toISOString()}::timestamptz)`,
        sql`${discovery} ->> 'triggered_at' is not null`,
      ),
    )
    .orderBy(workflows.requestedAt)
    .limit(100);
}

/** A node that is not deleted and has this BMC, at whatever site; the host's own node is none. */
export async function nodeWithBmc(
  db: Db,
  { nodeId, ipmiIp }: { readonly nodeId: NodeId; readonly ipmiIp: string },
): Promise<{ id: NodeId; hostname: string; status: string; siteName: string } | null> {
  const [found] = await db
    .select({ id: nodes.id, hostname: nodes.hostname, status: nodes.status, siteName: maasSites.name })
    .from(nodeMaasState)
    .innerJoin(nodes, eq(nodes.id, nodeMaasState.nodeId))
    .innerJoin(maasSites, eq(maasSites.id, nodeMaasState.siteId))
    .where(and(eq(nodeMaasState.ipmiIp, ipmiIp), ne(nodeMaasState.nodeId, nodeId), ne(nodes.status, "deleted")))
    .limit(1);
  return found ?? null;
}
