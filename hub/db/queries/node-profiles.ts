import type { NodeId, ProfileId } from "../../../shared/ids.ts";
import { eq, sql } from "../orm.ts";
import { type MaasSiteProfile, maasSiteProfiles, nodes } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { profileOf } from "./decommissions.ts";

export type TurnoverPolicy = Pick<MaasSiteProfile, "turnoverMode" | "softResetAfterRoot" | "gpuClaimLevel">;

/** The rules of a node's profile for the node's time in service: for its readiness and for its cleaning after a tenant. */
export interface NodePolicy extends TurnoverPolicy, Pick<MaasSiteProfile, "readinessPolicy"> {
  readonly profileId: ProfileId;
  readonly profileName: string;
}

/**
 * Returns what the profiles of the given nodes say about their readiness and about their cleaning between two tenants (decision C4). The map that
 * `nodePolicies` returns has no entry for a node of manual mode, which has no profile.
 */
export async function nodePolicies(db: Db | Tx, nodeIds: readonly NodeId[]): Promise<ReadonlyMap<NodeId, NodePolicy>> {
  if (nodeIds.length === 0) return new Map();
  const rows = await db
    .select({
      nodeId: nodes.id,
      profileId: maasSiteProfiles.id,
      profileName: maasSiteProfiles.name,
      readinessPolicy: maasSiteProfiles.readinessPolicy,
      turnoverMode: maasSiteProfiles.turnoverMode,
      softResetAfterRoot: maasSiteProfiles.softResetAfterRoot,
      gpuClaimLevel: maasSiteProfiles.gpuClaimLevel,
    })
    .from(nodes)
    .innerJoin(maasSiteProfiles, eq(maasSiteProfiles.id, profileOf(nodes.id)))
    .where(sql`${nodes.id} = any(${sql.param([...nodeIds])}::uuid[])`);
  return new Map(rows.map(({ nodeId, ...policy }) => [nodeId, policy]));
}

/** Returns the condition types that the readiness policies ask for. */
export const typesIn = (policies: Iterable<NodePolicy>): string[] => [
  ...new Set(
    [...policies].flatMap(({ readinessPolicy }) =>
      readinessPolicy.flatMap(({ all = [], any = [] }) => [...all, ...any].map(({ type }) => type)),
    ),
  ),
];
