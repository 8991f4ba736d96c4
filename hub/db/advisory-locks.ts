import type { Client } from "pg";
import { type SQL, sql } from "./orm.ts";
import type { Tx } from "./tx.ts";

/**
 * The list of all advisory locks, each with its number and what it protects. PostgreSQL has two kinds of keys that never collide: a pair of numbers,
 * and one large number. A number is never changed or reused, because hubs of two versions share a database during a rolling upgrade.
 */

/**
 * Locks with a pair of numbers, held until the transaction ends. The second number is a hash of what is locked, so two different things may wait for
 * each other.
 */
export const LOCK_CLASSES = {
  /**
   * The names of nodes that are installed by hand, by hostname. Nodes installed by hand may have no site, and without a site no index prevents a
   * duplicate name.
   */
  manual_node_name: 74_103,
  /** A profile's places for simultaneous deploys, by profile. */
  deploy_slots: 74_104,
  /** The admin token's file and row. Of several hubs that start at once on one folder, one creates the token and the others read it. */
  admin_token: 74_105,
  /** The RoCE rows of a site, by site. */
  roce_rows: 74_106,
  /** The claiming of webhook deliveries. Hubs claim one after the other, because each must count the deliveries that the others hold. */
  webhook_claims: 74_107,
  /** The stored answer of an `Idempotency-Key`, by actor and key. */
  idempotency_key: 74_108,
  /** The addresses of sites. Each region may be one site only, and no index recognizes two spellings of one address. */
  site_addresses: 74_109,
  /** The chain of statements about the hub's keys. Each statement is signed with a key that the previous statement left valid. */
  authority_statements: 74_110,
} as const;

/**
 * Waits for the lock and holds it until the transaction ends. `of` names one thing within the lock's class; it is empty if the class has only one.
 */
export async function lockUntilCommit(tx: Tx, lock: keyof typeof LOCK_CLASSES, of = ""): Promise<void> {
  await tx.execute(sql`select pg_advisory_xact_lock(${LOCK_CLASSES[lock]}, hashtext(${of}))`);
}

/** Large number for schema migrations; "muster" in ASCII. */
export const MIGRATION_LOCK = 0x6d7573746572n;
/**
 * The upper 16 bits of the large numbers that mark running writers of domain events (`recordDomainEvent`). The lower 48 bits are a sequence number.
 * The migration's number has other upper bits.
 */
export const EVENT_LOCK_SPACE = 0x4d45;

/** Locks until the session ends. If this process dies, the server releases the lock. */
export async function lockMigrations(client: Client): Promise<void> {
  await client.query("select pg_advisory_lock($1::bigint)", [MIGRATION_LOCK.toString()]);
}

/** SQL that marks its transaction as a writer of events after the given number. The lock is shared, so writers do not wait for each other. */
export const markOfWriter = (after: SQL): SQL =>
  sql`pg_advisory_xact_lock_shared((${EVENT_LOCK_SPACE}::int8 << 48) | ${after})`;
