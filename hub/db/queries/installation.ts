import { installation } from "../schema/index.ts";
import type { Tx } from "../tx.ts";

/** Null before the first hub has started on this database. */
export async function readSecretStoreId(tx: Tx): Promise<string | null> {
  const [row] = await tx.select({ id: installation.secretStoreId }).from(installation);
  return row?.id ?? null;
}

export async function recordSecretStoreId(tx: Tx, id: string): Promise<void> {
  await tx.insert(installation).values({ secretStoreId: id });
}
