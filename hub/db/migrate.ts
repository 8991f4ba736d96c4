/** If several hubs start at once, the first hub migrates the database and the other hubs wait. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Client } from "pg";
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

/** The database lacks migrations, and the hub's role may not apply them. The message of the error `SchemaBehind` says what a person must do next. */
export class SchemaBehind extends Error {}

/**
 * Applies the pending migrations at a hub's start. A hub whose role may not change the schema can still start if the schema is current, so that the
 * role need not own the tables (decision L3).
 */
export async function migrateAtStart(url: string): Promise<void> {
  const client = await connectOnce(url, "muster-migrate");
  try {
    await lockMigrations(client);
    const { role, mayMigrate, maySee, newest } = await schemaState(client);
    if (newest !== null && newest >= NEWEST) return;
    if (!mayMigrate)
      throw new SchemaBehind(
        maySee
          ? `The database ${newest === null ? "has no tables" : "is of an older version"} of Muster, and the role ${role} of DATABASE_URL may not change that. Run the command migrate of this version with the DATABASE_URL of the owner (docs/audit.md).`
          : `The role ${role} of DATABASE_URL may not read the tables of Muster. Give the role its rights as the owner of the tables (docs/audit.md, "A database role that cannot change the audit").`,
      );
    await applyMigrations(drizzle(client), { migrationsFolder: MIGRATIONS });
  } finally {
    await client.end();
  }
}

const Rights = z.tuple([z.object({ role: z.string(), mayMigrate: z.boolean(), maySee: z.boolean() })]);
const Newest = z.tuple([z.object({ newest: z.coerce.number().nullable() })]);

/**
 * What the hub's database role may do, and the newest applied migration; `newest` is null if no migration was applied, or if the role may not see it.
 */
async function schemaState(client: Client) {
  const rights = await client.query(`
    select current_user as role, has_database_privilege(current_database(), 'create') as "mayMigrate",
      coalesce((select has_schema_privilege(oid, 'usage') from pg_namespace where nspname = 'drizzle'), true) as "maySee"`);
  const [state] = Rights.parse(rights.rows);
  if (!state.maySee) return { ...state, newest: null };
  const { rows } = await client.query("select to_regclass('drizzle.__drizzle_migrations') is not null as made");
  if (rows[0]?.made !== true) return { ...state, newest: null };
  const [{ newest }] = Newest.parse(
    (await client.query("select max(created_at) as newest from drizzle.__drizzle_migrations")).rows,
  );
  return { ...state, newest };
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
