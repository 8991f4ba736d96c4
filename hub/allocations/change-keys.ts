import { ApiError } from "../../shared/api/errors.ts";
import { MOST_KEYS_OF_AN_ACCOUNT } from "../../shared/ssh-key.ts";
import { findNaming, readWantedKeys } from "../db/queries/allocation-keys.ts";
import { markKeysDue } from "../db/queries/allocations.ts";
import { lockTenantKeys } from "../db/queries/ssh-keys.ts";
import type { Tx } from "../db/tx.ts";

/**
 * Changes the stored keys or groups of a tenant, and makes the keys of all live allocations due that the change concerns. A change that would leave an
 * account without a key, or with too many keys, is refused: without a key nobody could log in, and the agent would refuse the order.
 * The allocations are those that name something before the change, because a deletion takes the last name out of an allocation too.
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
