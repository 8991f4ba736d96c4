import type { NodeId } from "../../../shared/ids.ts";
import { sql } from "../orm.ts";
import { type MaasSiteProfile, maasSiteProfiles, nodeOnboardings } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

export type TurnoverPolicy = Pick<MaasSiteProfile, "turnoverMode" | "softResetAfterRoot" | "gpuClaimLevel">;

/**
 * Returns how the hub cleans the given nodes between two tenants (decision C4), as the nodes' profiles say. The map that `turnoverPolicies` returns
 * has no entry for a node that joined Muster without an onboarding and so has no profile.
 */
export async function turnoverPolicies(
  db: Db | Tx,
  nodeIds: readonly NodeId[],
): Promise<ReadonlyMap<NodeId, TurnoverPolicy>> {
  if (nodeIds.length === 0) return new Map();
  const last = await db
    .selectDistinctOn([nodeOnboardings.nodeId], {
      nodeId: nodeOnboardings.nodeId,
      turnoverMode: maasSiteProfiles.turnoverMode,
      softResetAfterRoot: maasSiteProfiles.softResetAfterRoot,
      gpuClaimLevel: maasSiteProfiles.gpuClaimLevel,
    })
    .from(nodeOnboardings)
    .innerJoin(maasSiteProfiles, sql`${maasSiteProfiles.id} = ${nodeOnboardings.profileId}`)
    .where(sql`${nodeOnboardings.nodeId} = any(${sql.param([...nodeIds])}::uuid[])`)
    .orderBy(nodeOnboardings.nodeId, sql`${nodeOnboardings.createdAt} desc`);
  return new Map(last.map(({ nodeId, ...policy }) => [nodeId, policy]));
}
