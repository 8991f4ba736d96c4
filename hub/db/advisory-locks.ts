import type { Client } from "pg";
import { type SQL, sql } from "./orm.ts";
import type { Tx } from "./tx.ts";

/**
 * THE list of advisory locks, each with its number and what it guards. PostgreSQL knows two kinds of keys that never meet: a pair of numbers, and one
 * large number. A number is never changed or given to another lock: hubs of two versions share a database while one is rolled out.
 */

/** Locks by pair, held until the transaction ends; the second number is the hash of what is locked, so that two different things may wait for each other. */
export const LOCK_CLASSES = {
  /** The names of nodes that are installed by hand; by hostname. Without a site no index keeps a name from being given twice. */
  manual_node_name: 74_103,
  /** The places of a profile to deploy at once; by profile. */
  deploy_slots: 74_104,
  /** The admin token's file and row: of several hubs that start at once on one folder, one makes the token and the others find it. */
  admin_token: 74_105,
  /** The RoCE rows of a site; by site. */
  roce_rows: 74_106,
  /** The claiming of webhooks' deliveries: hubs claim one after the other, as each must count what the others hold. */
  webhook_claims: 74_107,
  /** The answer that an `Idempotency-Key` stands for; by actor and key. */
  idempotency_key: 74_108,
  /** The addresses of sites: a region is one site, and no index can tell how an address is spelt. */
  site_addresses: 74_109,
  /** The chain of statements about the hub's keys: each is signed by what the one before left in force. */
  authority_statements: 74_110,
} as const;

/** Waits for whoever holds the lock, then holds it until the transaction ends. `of`: which one of its class; none where there is only one. */
export async function lockUntilCommit(tx: Tx, lock: keyof typeof LOCK_CLASSES, of = ""): Promise<void> {
  await tx.execute(sql`select pg_advisory_xact_lock(${LOCK_CLASSES[lock]}, hashtext(${of}))`);
}

/** Large number: who migrates the schema; "muster" in ASCII. */
export const MIGRATION_LOCK = 0x6d7573746572n;
/**
 * Upper 16 bits of large numbers, whose lower 48 are a sequence number: running writers of domain events (`recordDomainEvent`). The migration's has none
 * of these bits.
 */
export const EVENT_LOCK_SPACE = 0x4d45;

/** Held by the session: if this process dies, the server frees it. */
export async function lockMigrations(client: Client): Promise<void> {
  await client.query("select pg_advisory_lock($1::bigint)", [MIGRATION_LOCK.toString()]);
}

/** Part of a statement that marks its transaction as one that writes events after the number given; shared, so no writer waits for another. */
export const markOfWriter = (after: SQL): SQL =>
  sql`pg_advisory_xact_lock_shared((${EVENT_LOCK_SPACE}::int8 << 48) | ${after})`;
