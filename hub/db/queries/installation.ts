import { installation } from "../schema/index.ts";
import type { Db } from "../tx.ts";

/** Returns the id of the secret store that belongs to this database, or null before the first hub has started. */
export async function readSecretStoreId(db: Db): Promise<string | null> {
  const [row] = await db.select({ id: installation.secretStoreId }).from(installation);
  return row?.id ?? null;
}

/**
 * Stores the id of the secret store unless another hub has already stored an id. `recordSecretStoreId` keeps only the first stored id, so its caller
 * then reads which id counts.
 */
export async function recordSecretStoreId(db: Db, id: string): Promise<void> {
  await db.insert(installation).values({ secretStoreId: id }).onConflictDoNothing();
}
