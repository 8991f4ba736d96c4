import type { NodeId } from "../../../shared/ids.ts";
import { eq } from "../orm.ts";
import {
  type MaasSite,
  type MaasSiteProfile,
  maasSiteProfiles,
  maasSites,
  nodeMaasState,
  nodes,
  type Sku,
  skus,
} from "../schema/index.ts";
import type { Db } from "../tx.ts";
import { profileOf } from "./decommissions.ts";

export interface ReimagedHost {
  readonly site: MaasSite;
  readonly profile: MaasSiteProfile;
  readonly sku: Sku;
  readonly ipmiIp: string;
}

/** Reads the settings with which a reimage deploys a node: the settings of the node's last onboarding. */
export async function readReimagedHost(db: Db, nodeId: NodeId): Promise<ReimagedHost | null> {
  const [row] = await db
    .select({ site: maasSites, profile: maasSiteProfiles, sku: skus, ipmiIp: nodeMaasState.ipmiIp })
    .from(nodes)
    .innerJoin(nodeMaasState, eq(nodeMaasState.nodeId, nodes.id))
    .innerJoin(maasSites, eq(maasSites.id, nodes.siteId))
    .innerJoin(skus, eq(skus.id, nodes.sku))
    .innerJoin(maasSiteProfiles, eq(maasSiteProfiles.id, profileOf(nodes.id)))
    .where(eq(nodes.id, nodeId));
  return row ?? null;
}
