import { z } from "zod";
import type { NodeId } from "../../../shared/ids.ts";
import { sql } from "../orm.ts";
import type { Db, Tx } from "../tx.ts";

/**
 * The name of the image, for example `ubuntu/noble`, that MAAS gave when the workflow saw the machine deployed, and the node's generation with that
 * system.
 */
export const DeployedImage = z.object({ generation: z.number(), name: z.string().max(128) });
export type DeployedImage = z.output<typeof DeployedImage>;

/**
 * Returns the image from which MAAS deployed the node's present system, or null if no onboarding or reimage noted it: a person installed the host, or
 * an older hub saw the deploy.
 */
export async function readDeployedImage(db: Db | Tx, nodeId: NodeId, generation: number): Promise<string | null> {
  const { rows } = await db.execute<{ name: string | null }>(sql`
    select w.state->'deployed_image'->>'name' as name from workflows w
    where w.id in (select onboarding_id from node_onboardings where node_id = ${nodeId}
        union select decommission_id from node_decommissions where node_id = ${nodeId})
      and w.state->'deployed_image'->>'generation' = ${String(generation)}
    order by w.requested_at desc limit 1`);
  return rows[0]?.name ?? null;
}
