import { lockUntilCommit } from "../advisory-locks.ts";
import { and, eq, lt, sql } from "../orm.ts";
import { type IdempotencyKey, idempotencyKeys } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

export async function findIdempotencyKey(db: Db | Tx, actor: string, key: string): Promise<IdempotencyKey | null> {
  const [row] = await db
    .select()
    .from(idempotencyKeys)
    .where(
      and(
        eq(idempotencyKeys.actor, actor),
        eq(idempotencyKeys.key, key),
        sql`${idempotencyKeys.createdAt} > now() - interval '1 day'`,
      ),
    );
  return row ?? null;
}

/** Waits until no other request with the given idempotency key runs, and returns the answer that is stored under the key. */
export async function lockIdempotencyKey(tx: Tx, actor: string, key: string): Promise<IdempotencyKey | null> {
  await lockUntilCommit(tx, "idempotency_key", `${actor} ${key}`);
  return findIdempotencyKey(tx, actor, key);
}

/**
 * Stores a request's answer unless another request with the same idempotency key has already stored one. If `keepIdempotencyKey` returns false, its
 * caller must roll its own transaction back.
 */
export async function keepIdempotencyKey(tx: Tx, row: Omit<IdempotencyKey, "createdAt">): Promise<boolean> {
  await tx.delete(idempotencyKeys).where(lt(idempotencyKeys.createdAt, sql`now() - interval '1 day'`));
  const kept = await tx
    .insert(idempotencyKeys)
    .values(row)
    .onConflictDoNothing()
    .returning({ key: idempotencyKeys.key });
  return kept.length > 0;
}
