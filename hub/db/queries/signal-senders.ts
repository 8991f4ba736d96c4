import type { SenderId } from "../../../shared/api/signal-senders.ts";
import { and, asc, count, eq, gt, isNull, type SQL, sql } from "../orm.ts";
import { type SignalSenderRow, signalSenders } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import type { Reach } from "./reach.ts";

const t = signalSenders;

/**
 * The name under which a sender of readiness signals acts in the API, as an SQL expression and as a string. No API token has a name with the prefix
 * `sender:`.
 */
export const actorOfSender = (name: SQL): SQL => sql`'sender:' || ${name}`;
export const actorNameOf = (name: string): string => `sender:${name}`;

/** Returns null if a sender of the name exists, or existed. */
export async function insertSender(
  tx: Tx,
  sender: Pick<SignalSenderRow, "id" | "name" | "sites" | "createdBy">,
): Promise<SignalSenderRow | null> {
  const [row] = await tx.insert(t).values(sender).onConflictDoNothing({ target: t.name }).returning();
  return row ?? null;
}

export async function countSenders(tx: Tx): Promise<number> {
  const [row] = await tx.select({ n: count() }).from(t);
  return row?.n ?? 0;
}

export async function readSender(db: Db | Tx, id: SenderId): Promise<SignalSenderRow | null> {
  const [row] = await db.select().from(t).where(eq(t.id, id));
  return row ?? null;
}

export async function revokeSender(tx: Tx, id: SenderId): Promise<void> {
  await tx
    .update(t)
    .set({ revokedAt: sql`now()` })
    .where(and(eq(t.id, id), isNull(t.revokedAt)));
}

export async function touchSender(db: Db, id: SenderId): Promise<void> {
  await db
    .update(t)
    .set({ lastUsedAt: sql`now()` })
    .where(and(eq(t.id, id), sql`coalesce(${t.lastUsedAt} < now() - interval '1 minute', true)`));
}

export const listSendersAfter = (
  db: Db,
  { name, after, reach }: { readonly name: string | undefined; readonly after: string | null; readonly reach: Reach },
  most: number,
): Promise<SignalSenderRow[]> =>
  db
    .select()
    .from(t)
    .where(
      and(
        name === undefined ? undefined : eq(t.name, name),
        after === null ? undefined : gt(t.name, after),
        reach.sites === null ? undefined : sql`${t.sites} <@ ${sql.param([...reach.sites])}::uuid[]`,
        reach.tenant === null ? undefined : sql`false`,
      ),
    )
    .orderBy(asc(t.name))
    .limit(most);
