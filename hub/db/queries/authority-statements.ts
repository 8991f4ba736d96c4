import { RENEWABLE_AFTER_EXPIRY_DAYS } from "../../../shared/identity.ts";
import type { NodeId } from "../../../shared/ids.ts";
import type { NodeStatus } from "../../../shared/node-status.ts";
import type { TrustStatement } from "../../../shared/trust.ts";
import { lockUntilCommit } from "../advisory-locks.ts";
import { asc, sql } from "../orm.ts";
import {
  type AuthorityStatementRow,
  agentSessions,
  authorityStatements,
  nodeCertificates,
  nodes,
} from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";

export interface KeptStatement {
  readonly statement: TrustStatement;
  readonly ageMs: number;
}

export async function readStatements(db: Db | Tx): Promise<KeptStatement[]> {
  const rows = await db
    .select({
      row: authorityStatements,
      ageMs: sql<number>`(extract(epoch from clock_timestamp() - ${authorityStatements.createdAt}) * 1000)::float8`,
    })
    .from(authorityStatements)
    .orderBy(asc(authorityStatements.sequence));
  return rows.map(({ row, ageMs }) => ({ statement: toStatement(row), ageMs }));
}

const toStatement = (row: AuthorityStatementRow): TrustStatement => ({
  sequence: row.sequence,
  kind: row.kind,
  generation: row.generation,
  ca_pem: row.caPem,
  order_key: row.orderKey,
  signature: row.signature,
});

/** Reads all statements about the hub's keys, and lets no other transaction add a statement until the reading transaction ends. */
export async function lockStatements(tx: Tx): Promise<KeptStatement[]> {
  await lockUntilCommit(tx, "authority_statements");
  return readStatements(tx);
}

export async function addStatement(tx: Tx, statement: TrustStatement): Promise<void> {
  const { ca_pem: caPem, order_key: orderKey, ...same } = statement;
  await tx.insert(authorityStatements).values({ ...same, caPem, orderKey });
}

export interface TrustCounts {
  readonly hosts: number;
  readonly informed: number;
  readonly missing: { id: NodeId; hostname: string; status: NodeStatus; last_seen_at: string }[];
}

/** SQL for the agent sessions `a` of nodes `n` whose certificate belongs to the node's present generation and is valid or renewable. */
export const ENROLLED_HOSTS = sql`${agentSessions} a join ${nodes} n on n.id = a.node_id and n.generation = a.generation
    and n.status <> 'deleted' and exists (
      select from ${nodeCertificates} c where c.node_id = n.id and c.generation = n.generation and c.revoked_at is null
        and c.replaced_at is null and c.not_after > now() - make_interval(days => ${RENEWABLE_AFTER_EXPIRY_DAYS}))`;

/**
 * Counts the enrolled hosts, and the enrolled hosts that trust the statements about the hub's keys up to the number `sequence`. `countTrust` returns
 * as examples some hosts that do not trust the statement with the number `sequence` yet, beginning with the host that contacted the hub last.
 * `countTrust` leaves out a host whose certificate can no longer be renewed, because a new enrollment will give the host the hub's current keys.
 */
export async function countTrust(db: Db | Tx, sequence: number, most: number): Promise<TrustCounts> {
  const { rows } = await db.execute<
    TrustCounts["missing"][number] & { hosts: number; informed: number; knows: boolean }
  >(sql`
    select n.id, n.hostname, n.status, to_char(a.last_seen_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as last_seen_at,
      coalesce(a.trust_sequence, 0) >= ${sequence} as knows,
      (count(*) over ())::int as hosts,
      (count(*) filter (where coalesce(a.trust_sequence, 0) >= ${sequence}) over ())::int as informed
    from ${ENROLLED_HOSTS}
    order by knows, a.last_seen_at desc, n.id limit ${most}`);
  const [first] = rows;
  return {
    hosts: first?.hosts ?? 0,
    informed: first?.informed ?? 0,
    missing: rows
      .filter((row) => !row.knows)
      .map(({ id, hostname, status, last_seen_at }) => ({ id, hostname, status, last_seen_at })),
  };
}
