import { installation } from "../schema/index.ts";
import type { Db } from "../tx.ts";

/** Null before the first hub has started on this database. */
export async function readSecretStoreId(db: Db): Promise<string | null> {
  const [row] = await db.select({ id: installation.secretStoreId }).from(installation);
  return row?.id ?? null;
}

/** Of several hubs that start at once the first one's counts: read it afterwards. */
export async function recordSecretStoreId(db: Db, id: string): Promise<void> {
  await db.insert(installation).values({ secretStoreId: id }).onConflictDoNothing();
}
