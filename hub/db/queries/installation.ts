import { installation } from "../schema/index.ts";
import type { Db } from "../tx.ts";

/** The id of the installation's secret store. Null before the first hub has started on this database. */
export async function readSecretStoreId(db: Db): Promise<string | null> {
  const [row] = await db.select({ id: installation.secretStoreId }).from(installation);
  return row?.id ?? null;
}

/** Stores the id unless another hub has stored one first. The caller reads the id afterwards, because only the first one counts. */
export async function recordSecretStoreId(db: Db, id: string): Promise<void> {
  await db.insert(installation).values({ secretStoreId: id }).onConflictDoNothing();
}
