import { SSH_KEY } from "./allocatable-node.ts";
import type { WriteWorld } from "./write-world.ts";

/** A request for a batch of one allocation, with a free node for it. */
export async function batchRequest(world: WriteWorld): Promise<object> {
  const id = await world.schedulableNode();
  const { skuId } = await world.site();
  const { rows } = await world.api.database.database.pool.query(
    "update nodes set sku = $1 where id = $2 returning site_id, sku as sku_id",
    [skuId, id],
  );
  return { ...rows[0], count: 1, tenant: "acme", login_user: "alice", ssh_keys: [SSH_KEY] };
}
