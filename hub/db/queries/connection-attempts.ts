import type { NodeId } from "../../../shared/ids.ts";
import { and, desc, eq, gte, inArray, or, sql } from "../orm.ts";
import { type AttemptKind, type ConnectionAttempt, connectionAttempts, enrollmentTokens } from "../schema/index.ts";
import type { Db } from "../tx.ts";

export interface NotedAttempt {
  readonly address: string;
  readonly kind: AttemptKind;
  readonly detail: string;
  readonly tokenSha256: string | null;
  readonly count: number;
}

/** The hub deletes the oldest connection attempts beyond `MOST_ROWS`, so a client with many addresses cannot fill the database. */
const MOST_ROWS = 5_000;
const MOST_SHOWN = 20;

/** The times of connection attempts in the database come from the database's clock. */
export async function keepConnectionAttempts(db: Db, noted: readonly NotedAttempt[]): Promise<void> {
  if (noted.length === 0) return;
  const rows = await byNode(db, noted);
  const pauseEnded = sql`${connectionAttempts.lastAt} < now() - interval '1 hour'`;
  await db
    .insert(connectionAttempts)
    .values(rows.map((row) => ({ ...row, firstAt: sql`now()`, lastAt: sql`now()` })))
    .onConflictDoUpdate({
      target: [connectionAttempts.address, connectionAttempts.kind, connectionAttempts.nodeId],
      set: {
        detail: sql`excluded.detail`,
        count: sql`case when ${pauseEnded} then excluded.count else ${connectionAttempts.count} + excluded.count end`,
        firstAt: sql`case when ${pauseEnded} then now() else ${connectionAttempts.firstAt} end`,
        lastAt: sql`now()`,
      },
    });
  await db.execute(sql`
    delete from connection_attempts where ctid = any(array(
      select ctid from connection_attempts order by last_at desc offset ${MOST_ROWS}))`);
}

/**
 * Merges connection attempts into one row for each address, kind and node, in an order that is the same on every hub. Because all hubs lock the rows
 * in one common order, they cannot deadlock. PostgreSQL allows one statement to change a row only once.
 */
async function byNode(db: Db, noted: readonly NotedAttempt[]) {
  const sums = [...new Set(noted.flatMap(({ tokenSha256 }) => tokenSha256 ?? []))];
  const tokens = await db
    .select({ tokenSha256: enrollmentTokens.tokenSha256, nodeId: enrollmentTokens.nodeId })
    .from(enrollmentTokens)
    .where(inArray(enrollmentTokens.tokenSha256, sums));
  const nodeOf = new Map(tokens.map((token) => [token.tokenSha256, token.nodeId]));
  const rows = new Map<string, { address: string; kind: AttemptKind; nodeId: NodeId | null } & Counted>();
  for (const { address, kind, detail, tokenSha256, count } of noted) {
    const nodeId = nodeOf.get(tokenSha256 ?? "") ?? null;
    const key = `${address} ${kind} ${nodeId}`;
    rows.set(key, { address, kind, nodeId, detail, count: count + (rows.get(key)?.count ?? 0) });
  }
  return [...rows].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
}
type Counted = Pick<NotedAttempt, "detail" | "count">;

/** Lists the newest connection attempts after `since` that came from one of the addresses or with an enrollment token of the node. */
export function listConnectionAttempts(
  db: Db,
  { addresses, nodeId, since }: { addresses: readonly string[]; nodeId: NodeId; since: Date },
): Promise<ConnectionAttempt[]> {
  return db
    .select()
    .from(connectionAttempts)
    .where(
      and(
        or(inArray(connectionAttempts.address, [...addresses]), eq(connectionAttempts.nodeId, nodeId)),
        gte(connectionAttempts.lastAt, since),
      ),
    )
    .orderBy(desc(connectionAttempts.lastAt))
    .limit(MOST_SHOWN);
}
