import type { NodeId } from "../../../shared/ids.ts";
import { eq, sql } from "../orm.ts";
import { type MaasSiteProfile, maasSiteProfiles, nodes } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { profileOf } from "./decommissions.ts";

export type TurnoverPolicy = Pick<MaasSiteProfile, "turnoverMode" | "softResetAfterRoot" | "gpuClaimLevel">;

/**
 * Returns how the hub cleans the given nodes between two tenants (decision C4), as the nodes' profiles say. The map that `turnoverPolicies` returns
 * has no entry for a node of manual mode, which has no profile.
 */
export async function turnoverPolicies(
  db: Db | Tx,
  nodeIds: readonly NodeId[],
): Promise<ReadonlyMap<NodeId, TurnoverPolicy>> {
  if (nodeIds.length === 0) return new Map();
  const rows = await db
    .select({
      nodeId: nodes.id,
      turnoverMode: maasSiteProfiles.turnoverMode,
      softResetAfterRoot: maasSiteProfiles.softResetAfterRoot,
      gpuClaimLevel: maasSiteProfiles.gpuClaimLevel,
    })
    .from(nodes)
    .innerJoin(maasSiteProfiles, eq(maasSiteProfiles.id, profileOf(nodes.id)))
    .where(sql`${nodes.id} = any(${sql.param([...nodeIds])}::uuid[])`);
  return new Map(rows.map(({ nodeId, ...policy }) => [nodeId, policy]));
}
