import type { Client } from "pg";
import { type SQL, sql } from "./orm.ts";
import type { Tx } from "./tx.ts";

/**
 * Every advisory lock of the database has its number in this file, so that no two locks share a number. PostgreSQL has two kinds of advisory lock
 * keys that never collide: a pair of numbers, and one large number. Muster never changes or reuses the number of an advisory lock, because hubs of
 * two versions share a database during a rolling upgrade.
 */

/**
 * The key of each lock in `LOCK_CLASSES` is a pair of numbers, and PostgreSQL releases the lock when the transaction ends. The second number of an
 * advisory lock's key is a hash of the name of what the lock protects. If two names have the same hash, a transaction that locks one name waits for a
 * transaction that locks the other name.
 */
export const LOCK_CLASSES = {
  /**
   * The lock `manual_node_name` protects the name of a node whose agent somebody installs by hand. No unique index prevents two nodes without a site
   * from having the same name, and a node installed by hand may have no site.
   */
  manual_node_name: 74_103,
  deploy_slots: 74_104,
  /**
   * The lock `admin_token` protects the file and the database row of the admin token. If several hubs start at once on one state folder, one hub
   * creates the admin token and every other hub reads the token.
   */
  admin_token: 74_105,
  roce_rows: 74_106,
  /** Hubs claim webhook deliveries one after the other, because each hub must count the deliveries that the other hubs hold. */
  webhook_claims: 74_107,
  idempotency_key: 74_108,
  /**
   * The lock `site_addresses` protects the MAAS addresses of all sites. Two sites must not use the same MAAS region, and no unique index recognizes
   * two spellings of one address.
   */
  site_addresses: 74_109,
  /**
   * The lock `authority_statements` protects the chain of signed statements about the hub's keys. Each statement about the hub's keys is signed with
   * a key that the previous statement left valid.
   */
  authority_statements: 74_110,
  /**
   * The lock `sanitization_chain` protects the chain of a node's sanitization records. Each sanitization record contains the hash of the node's
   * previous record.
   */
  sanitization_chain: 74_112,
  /**
   * The lock `audit_chain` protects the end of the chain of audit entries. One hub at a time seals audit entries, which means that it gives them
   * their numbers and hashes in the chain.
   */
  audit_chain: 74_113,
  /** The lock `fleet_sample` lets only one hub count the fleet's nodes and operations for the charts at each sampling time. */
  fleet_sample: 74_114,
  /**
   * Automatic repair requests at one site run one after the other, because the site's circuit breaker for repairs counts the earlier requests that
   * are still open.
   */
  repair_breaker: 74_122,
  /** Batches of allocations of one SKU at one site run one after the other, so that no two of them wait for each other's nodes. */
  allocation_batch: 74_128,
  /** The lock `probe_plan` lets one hub at a time compare which network probes of hosts the profiles ask for with which probes the hubs make. */
  probe_plan: 74_127,
  /** Requests that adopt machines run one after the other, so that no two of them adopt one machine (decision N8). */
  machine_adoption: 74_120,
  /**
   * The lock `tenant_keys` protects the SSH keys and key groups of a tenant, and which of the tenant's allocations name them, so that no change leaves
   * an account without a key.
   */
  tenant_keys: 74_123,
} as const;

/**
 * Waits until the transaction has the advisory lock `lock`, which PostgreSQL releases when the transaction ends. The argument `of` names what the
 * advisory lock protects, e.g. by a site's id, and is empty if the lock protects only one thing.
 */
export async function lockUntilCommit(tx: Tx, lock: keyof typeof LOCK_CLASSES, of = ""): Promise<void> {
  await tx.execute(sql`select pg_advisory_xact_lock(${LOCK_CLASSES[lock]}, hashtext(${of}))`);
}

/** Takes the advisory lock until the transaction ends if no other transaction holds it, and returns whether it took the lock. */
export async function tryLockUntilCommit(tx: Tx, lock: keyof typeof LOCK_CLASSES): Promise<boolean> {
  const { rows } = await tx.execute<{ taken: boolean }>(
    sql`select pg_try_advisory_xact_lock(${LOCK_CLASSES[lock]}, hashtext('')) as taken`,
  );
  return rows[0]?.taken === true;
}

/** The key of the lock for schema migrations is the text "muster" in ASCII. */
export const MIGRATION_LOCK = 0x6d7573746572n;
/**
 * The upper 16 bits of the advisory lock keys that mark running writers of domain events (`recordDomainEvent`). The lower 48 bits of an event
 * writer's lock key are a sequence number. The schema migrations' lock key differs from the event writers' lock keys in the upper 16 bits, so the
 * keys never collide.
 */
export const EVENT_LOCK_SPACE = 0x4d45;

export async function lockMigrations(client: Client): Promise<void> {
  await client.query("select pg_advisory_lock($1::bigint)", [MIGRATION_LOCK.toString()]);
}

/**
 * SQL that marks the present transaction as a writer of domain events with sequence numbers above `after`. Writers of domain events hold their locks
 * as shared locks, so writers do not wait for each other.
 */
export const markOfWriter = (after: SQL): SQL =>
  sql`pg_advisory_xact_lock_shared((${EVENT_LOCK_SPACE}::int8 << 48) | ${after})`;
