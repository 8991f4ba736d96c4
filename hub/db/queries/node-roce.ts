import { ROCE_CONDITIONS } from "../../../shared/condition-types.ts";
import type { NodeId, ProfileId } from "../../../shared/ids.ts";
import { and, eq, inArray, ne, sql } from "../orm.ts";
import { maasRoceLinks, maasSiteProfiles, nodeConditions, nodeMaasState } from "../schema/index.ts";
import type { Tx } from "../tx.ts";
import { profileOf } from "./decommissions.ts";
import type { RoceLink } from "./roce-links.ts";

export interface RoceOfNode {
  /** The RoCE addresses that Muster had assigned in MAAS to the interfaces of the node's machine at the machine's last deploy. */
  readonly links: readonly RoceLink[];
  /** True if the node's profile keeps new work off a host that lacks one of its RoCE addresses. */
  readonly required: boolean;
}

/** Returns the nodes of a profile that lack RoCE addresses, or of which nobody knows whether they have them. */
export async function nodesLackingRoce(tx: Tx, profileId: ProfileId): Promise<NodeId[]> {
  const rows = await tx
    .selectDistinct({ nodeId: nodeConditions.nodeId })
    .from(nodeConditions)
    .where(
      and(
        inArray(nodeConditions.type, [...ROCE_CONDITIONS]),
        ne(nodeConditions.status, "True"),
        sql`${profileOf(nodeConditions.nodeId)} = ${profileId}`,
      ),
    );
  return rows.map(({ nodeId }) => nodeId);
}

/** Reads the RoCE addresses that the host of a node must have. A node without a machine in MAAS has no RoCE addresses. */
export async function readRoceOfNode(tx: Tx, nodeId: NodeId): Promise<RoceOfNode> {
  const rows = await tx
    .select({
      interface: maasRoceLinks.interface,
      ipAddress: maasRoceLinks.ipAddress,
      required: maasSiteProfiles.roceRequired,
    })
    .from(nodeMaasState)
    .innerJoin(
      maasRoceLinks,
      and(eq(maasRoceLinks.siteId, nodeMaasState.siteId), eq(maasRoceLinks.maasSystemId, nodeMaasState.maasSystemId)),
    )
    .leftJoin(maasSiteProfiles, eq(maasSiteProfiles.id, profileOf(nodeMaasState.nodeId)))
    .where(eq(nodeMaasState.nodeId, nodeId))
    .orderBy(maasRoceLinks.interface, maasRoceLinks.ipAddress);
  return { links: rows, required: rows.some(({ required }) => required !== false) };
}
