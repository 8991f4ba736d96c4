import type { NodeId } from "../../../shared/ids.ts";
import { sql } from "../orm.ts";
import { maasSiteProfiles, nodeOnboardings } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

/**
 * Those of the given nodes whose profile allows a soft reset after a tenant with root (decision C4). A node's profile is the profile of its last
 * onboarding. A node of manual mode has no profile, so nothing allows the soft reset.
 */
export async function softResetAfterRootNodes(db: Db | Tx, nodeIds: readonly NodeId[]): Promise<ReadonlySet<NodeId>> {
  if (nodeIds.length === 0) return new Set();
  const last = await db
    .selectDistinctOn([nodeOnboardings.nodeId], {
      nodeId: nodeOnboardings.nodeId,
      allowed: maasSiteProfiles.softResetAfterRoot,
    })
    .from(nodeOnboardings)
    .innerJoin(maasSiteProfiles, sql`${maasSiteProfiles.id} = ${nodeOnboardings.profileId}`)
    .where(sql`${nodeOnboardings.nodeId} = any(${sql.param([...nodeIds])}::uuid[])`)
    .orderBy(nodeOnboardings.nodeId, sql`${nodeOnboardings.createdAt} desc`);
  return new Set(last.flatMap(({ nodeId, allowed }) => (allowed ? [nodeId] : [])));
}
