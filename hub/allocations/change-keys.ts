import { ApiError } from "../../shared/api/errors.ts";
import { MOST_KEYS_OF_AN_ACCOUNT } from "../../shared/ssh-key.ts";
import { findNaming, readWantedKeys } from "../db/queries/allocation-keys.ts";
import { markKeysDue } from "../db/queries/allocations.ts";
import { lockTenantKeys } from "../db/queries/ssh-keys.ts";
import type { Tx } from "../db/tx.ts";

/**
 * Changes the stored keys or groups of a tenant, and marks each live allocation whose keys change, so that its account gets the new keys. A change
 * that would leave an account without a key, or with too many keys, is refused: without a key nobody could log in, and the agent refuses too many
 * keys. `changeTenantKeys` looks for the allocations that name keys or groups before the change, because the deletion of a key or group also removes
 * it from each allocation.
 */
export async function changeTenantKeys<T>(tx: Tx, tenant: string, change: () => Promise<T>): Promise<T> {
  await lockTenantKeys(tx, tenant);
  const naming = await findNaming(tx, tenant);
  const result = await change();
  const all = await readWantedKeys(tx, naming);
  const broken = all.find(({ wanted }) => wanted === 0 || wanted > MOST_KEYS_OF_AN_ACCOUNT);
  if (broken !== undefined)
    throw new ApiError(
      "conflict",
      broken.wanted === 0
        ? `The change would leave allocation ${broken.id} on node ${broken.hostname} without a key. Add another key to one of its groups first, or release the allocation.`
        : `The change would give allocation ${broken.id} on node ${broken.hostname} ${broken.wanted} keys, and an account has ${MOST_KEYS_OF_AN_ACCOUNT} at most. Remove keys from its groups first.`,
      { context: { allocation_id: broken.id } },
    );
  await markKeysDue(
    tx,
    all.filter(({ isToOrder }) => isToOrder).map(({ id }) => id),
  );
  return result;
}
