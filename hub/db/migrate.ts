/** If several hubs start at once, the first hub migrates the database and the other hubs wait. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { lockMigrations } from "./advisory-locks.ts";
import { connectOnce } from "./connect-once.ts";
import { applyMigrations, drizzle, readMigrationFiles, sql } from "./orm.ts";
import type { Db } from "./tx.ts";

const MIGRATIONS = fileURLToPath(new URL("./migrations", import.meta.url));

/**
 * The advisory lock for migrations belongs to a database session, so the whole migration runs on one connection of its own. Drizzle applies all
 * pending migrations in one transaction, so a failure leaves the schema unchanged.
 */
export async function migrate(url: string, folder: string = MIGRATIONS): Promise<void> {
  const client = await connectOnce(url, "muster-migrate");
  try {
    await lockMigrations(client);
    await applyMigrations(drizzle(client), { migrationsFolder: folder });
  } finally {
    await client.end();
  }
}

const Journal = z.object({ entries: z.array(z.object({ tag: z.string(), when: z.number() })).min(1) });
/** When Drizzle applies a migration, Drizzle stores the migration's `when` in the database. */
export const KNOWN_MIGRATIONS: readonly { readonly tag: string; readonly when: number }[] = Journal.parse(
  JSON.parse(readFileSync(join(MIGRATIONS, "meta/_journal.json"), "utf8")),
).entries;
/** Returns the SQL statements of all migrations that this version of the hub knows, in their order. */
export const migrationSteps = (): { readonly when: number; readonly hash: string; readonly statements: string[] }[] =>
  readMigrationFiles({ migrationsFolder: MIGRATIONS }).map(({ folderMillis, hash, sql: statements }) => ({
    when: folderMillis,
    hash,
    statements,
  }));
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
