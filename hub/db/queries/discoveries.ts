import type { NodeId, SiteId, WorkflowId } from "../../../shared/ids.ts";
import { and, eq, isNull, ne, sql } from "../orm.ts";
import { maasSites, nodeMaasState, nodeOnboardings, nodes, workflows } from "../schema/index.ts";
import type { Db } from "../tx.ts";

/** The part `discovery` of a workflow's state is null or missing if the workflow has not begun to search for its machine. */
const discovery = sql`${workflows.state} -> 'discovery'`;

/**
 * Returns the site's other onboardings that have found no machine, and whose discovery is under way or booted the host after `since`. A machine that
 * appears in MAAS may belong to the host of any onboarding that `otherDiscoveries` returns. A resumed onboarding may boot its host once more.
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

/** Finds a node at any site that has the BMC address `ipmiIp` and is not deleted, except the node `nodeId`. */
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
