import { createReadStream } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import type { Client } from "pg";
import { from as copyFrom } from "pg-copy-streams";
import { migrationSteps } from "../db/migrate.ts";
import { PLAIN_TEXTS } from "./dump.ts";
import { fileOfTable, type Manifest } from "./manifest.ts";
import { MIGRATIONS_TABLE, TABLES } from "./table-names.ts";

/**
 * The settings of the session in which a backup is loaded. If another program has locked a table, the restore fails after 30 s and does not wait for
 * ever.
 */
export const LOAD_SETTINGS = `${PLAIN_TEXTS}; set lock_timeout = '30s'`;

const NOT_OF_EXTENSION = `not exists (select 1 from pg_depend d where d.objid = o.oid and d.deptype = 'e')`;

async function list(client: Client, sql: string, values: readonly unknown[] = []): Promise<string[]> {
  const { rows } = await client.query<{ text: string }>(sql, [...values]);
  return rows.map(({ text }) => text);
}

/** Returns the tables in the database's schema `public`. */
export const tablesOf = (client: Client): Promise<string[]> =>
  list(
    client,
    `select 'public.' || relname as text from pg_class o
     where relkind in ('r', 'p') and relnamespace = 'public'::regnamespace and ${NOT_OF_EXTENSION} order by 1`,
  );

/** Returns the tables that no version of Muster has made, as far as this version and the backup know. */
export const foreignTables = (present: readonly string[], manifest: Manifest): string[] =>
  present.filter((name) => !TABLES.includes(name) && !manifest.tables.some((table) => table.name === name));

/** Returns the functions in the database's schema `public`. */
export const functionsOf = (client: Client): Promise<string[]> =>
  list(
    client,
    `select distinct 'public.' || proname as text from pg_proc o
     where pronamespace = 'public'::regnamespace and ${NOT_OF_EXTENSION} order by 1`,
  );

const MADE = /create(?: or replace)? function "?(\w+)"?\s*\(/gi;

/** Returns the functions that no migration of Muster makes, as far as this version knows. */
export function foreignFunctions(present: readonly string[]): string[] {
  const made = migrationSteps().flatMap(({ statements }) => [...statements.join("\n").matchAll(MADE)]);
  const own = new Set(made.map(([, name]) => `public.${name}`));
  return present.filter((name) => !own.has(name));
}

/**
 * Removes Muster's tables and functions, with all rows. If a later step fails, the caller's transaction undoes the removal of the tables and
 * functions.
 */
export async function dropAll(client: Client): Promise<void> {
  const drops = await list(
    client,
    `select format('drop table %s cascade', o.oid::regclass) as text from pg_class o
       where relkind in ('r', 'p') and relnamespace = 'public'::regnamespace and ${NOT_OF_EXTENSION}
     union all
     select format('drop function %s cascade', o.oid::regprocedure) from pg_proc o
       where pronamespace = 'public'::regnamespace and ${NOT_OF_EXTENSION}`,
  );
  for (const drop of drops) await client.query(drop);
  await client.query("drop schema if exists drizzle cascade");
}

/**
 * Makes the tables of the backup's version, loads the rows, and then applies the migrations since the backup's version. The caller has opened a
 * transaction on a database without tables.
 */
export async function loadTables(client: Client, folder: string, manifest: Manifest): Promise<void> {
  const steps = migrationSteps();
  await client.query(
    `create schema drizzle; create table ${MIGRATIONS_TABLE} (id serial primary key, hash text not null, created_at bigint)`,
  );
  for (const step of steps.filter(({ when }) => manifest.migrations.includes(when))) await apply(client, step);
  await loadRows(client, folder, manifest);
  for (const { name, last_value, is_called } of manifest.sequences)
    await client.query("select setval($1::regclass, $2::bigint, $3)", [name, last_value, is_called]);
  for (const step of steps.filter(({ when }) => !manifest.migrations.includes(when))) {
    await apply(client, step);
    await client.query(`insert into ${MIGRATIONS_TABLE} (hash, created_at) values ($1, $2)`, [step.hash, step.when]);
  }
}

async function apply(client: Client, { statements }: { readonly statements: readonly string[] }): Promise<void> {
  for (const statement of statements) await client.query(statement);
}

/**
 * While the rows of a backup are loaded, foreign keys are dropped and triggers are disabled, because the rows were consistent in their snapshot and
 * already had the triggers' effects.
 */
async function loadRows(client: Client, folder: string, manifest: Manifest): Promise<void> {
  const keys = await client.query<{ off: string; on: string }>(
    `select format('alter table %s drop constraint %I', conrelid::regclass, conname) as off,
       format('alter table %s add constraint %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) as on
     from pg_constraint where contype = 'f' and connamespace = 'public'::regnamespace`,
  );
  const triggers = await client.query<{ off: string; on: string }>(
    `select format('alter table %s disable trigger %I', tgrelid::regclass, tgname) as off,
       format('alter table %s enable %s trigger %I', tgrelid::regclass,
         case tgenabled when 'A' then 'always' when 'R' then 'replica' else '' end, tgname) as on
     from pg_trigger t join pg_class c on c.oid = t.tgrelid
     where not tgisinternal and tgenabled <> 'D' and c.relnamespace = 'public'::regnamespace`,
  );
  for (const { off } of [...keys.rows, ...triggers.rows]) await client.query(off);
  for (const table of manifest.tables) await loadTable(client, folder, table);
  for (const { on } of [...triggers.rows, ...keys.rows]) await client.query(on);
}

async function loadTable(client: Client, folder: string, table: Manifest["tables"][number]): Promise<void> {
  const { name, rows, columns } = table;
  // A migration may have put rows into a new table, so the table is emptied before the backup's rows are loaded, which include the rows of the
  // migration.
  await client.query(`delete from ${name}`);
  const copy = client.query(copyFrom(`copy ${name} (${columns.map((one) => `"${one}"`).join(", ")}) from stdin`));
  await pipeline(createReadStream(join(folder, fileOfTable(name))), createGunzip(), copy);
  if (copy.rowCount !== rows)
    throw new Error(`The backup has ${rows} rows of ${name}, and ${copy.rowCount} were loaded. Nothing was changed.`);
}
