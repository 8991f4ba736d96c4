import { and, asc, eq, gt, sql } from "../orm.ts";
import { type Sku, skus } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { given, isVersion, readVersion } from "./row-versions.ts";

type Fields = Pick<Sku, "description" | "gpuVendor" | "gpuModel" | "gpusTotal" | "hardware">;
type Change = { readonly [K in keyof Fields]?: Fields[K] | undefined } & {
  readonly status?: Sku["status"] | undefined;
};

export async function insertSku(tx: Tx, sku: Fields & Pick<Sku, "id">): Promise<Sku | null> {
  const [row] = await tx.insert(skus).values(sku).onConflictDoNothing().returning();
  return row ?? null;
}

export const listSkusAfter = (db: Db, after: string | null, most: number): Promise<Sku[]> =>
  db
    .select()
    .from(skus)
    .where(after === null ? undefined : gt(skus.id, after))
    .orderBy(asc(skus.id))
    .limit(most);

export async function readSku(db: Db | Tx, id: string): Promise<Sku | null> {
  const [row] = await db.select().from(skus).where(eq(skus.id, id));
  return row ?? null;
}

export const readSkuVersion = (db: Db | Tx, id: string): Promise<string | null> =>
  readVersion(db, skus, eq(skus.id, id));

/** Changes an SKU, and returns null if the SKU no longer has the version that the caller read. */
export async function changeSku(tx: Tx, id: string, version: string, change: Change): Promise<Sku | null> {
  const [row] = await tx
    .update(skus)
    .set({ ...given(change), updatedAt: sql`now()` })
    .where(and(eq(skus.id, id), isVersion(version)))
    .returning();
  return row ?? null;
}

export async function disableSku(tx: Tx, id: string): Promise<boolean> {
  const rows = await tx
    .update(skus)
    .set({ status: "disabled", updatedAt: sql`now()` })
    .where(eq(skus.id, id))
    .returning({ id: skus.id });
  return rows.length > 0;
}
