/** If several hubs start at once, the first hub migrates the database and the other hubs wait. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Client } from "pg";
import { z } from "zod";
import { lockMigrations } from "./advisory-locks.ts";
import { applyMigrations, drizzle, sql } from "./orm.ts";
import { Servers } from "./servers.ts";
import type { Db } from "./tx.ts";

const MIGRATIONS = fileURLToPath(new URL("./migrations", import.meta.url));

/**
 * The advisory lock for migrations belongs to a database session, so the whole migration runs on one connection of its own. Drizzle applies all
 * pending migrations in one transaction, so a failure leaves the schema unchanged.
 */
export async function migrate(url: string, folder: string = MIGRATIONS): Promise<void> {
  const client = await connectToFirst(new Servers(url));
  try {
    await lockMigrations(client);
    await applyMigrations(drizzle(client), { migrationsFolder: folder });
  } finally {
    await client.end();
  }
}

/** Tries each server once. If none can be used, the error is that of the first server, which is the primary server in most URLs. */
async function connectToFirst(servers: Servers): Promise<Client> {
  const faults: unknown[] = [];
  for (let tries = 0; tries < servers.count; tries += 1) {
    const client = new (servers.connections())({
      application_name: "muster-migrate",
      connectionTimeoutMillis: 10_000,
      keepAlive: true,
    });
    // A lost connection rejects the running query, so the listener for pg's event 'error' only keeps the event from ending the hub's process.
    client.on("error", () => undefined);
    try {
      await client.connect();
      return client;
    } catch (error) {
      faults.push(error);
      // The connection failed, so a failure to close it says nothing more.
      await client.end().catch(() => undefined);
    }
  }
  throw faults[0];
}

const Journal = z.object({ entries: z.array(z.object({ tag: z.string(), when: z.number() })).min(1) });
/** When Drizzle applies a migration, Drizzle stores the migration's `when` in the database. */
export const KNOWN_MIGRATIONS: readonly { readonly tag: string; readonly when: number }[] = Journal.parse(
  JSON.parse(readFileSync(join(MIGRATIONS, "meta/_journal.json"), "utf8")),
).entries;
const NEWEST = Math.max(...KNOWN_MIGRATIONS.map((entry) => entry.when));

/**
 * True if the database has the schema of the running hub's version or a newer schema. During a rolling upgrade, a hub of the previous version runs on
 * a newer schema. `isMigrated` is false, for example, after a person restored an older backup under a running hub.
 */
export async function isMigrated(db: Db): Promise<boolean> {
  const { rows } = await db.execute<{ migrated: boolean }>(
    sql`select max(created_at) >= ${NEWEST} as migrated from drizzle.__drizzle_migrations`,
  );
  return rows[0]?.migrated === true;
}
