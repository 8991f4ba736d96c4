import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { cp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { migrate } from "../../hub/db/migrate.ts";
import { sql } from "../../hub/db/orm.ts";
import type { Db } from "../../hub/db/tx.ts";
import type { State } from "../fakes/maas/state/model.ts";
import type { TestDatabase } from "../support/database.ts";
import type { UpgradeRecord } from "./upgrade-record.ts";

const MIGRATIONS = new URL("../../hub/db/migrations", import.meta.url).pathname;

const RECORDS = new URL("./records/", import.meta.url);

/** The files of all upgrade records, oldest first. */
export const RECORD_FILES = readdirSync(RECORDS).toSorted();

export function readRecord(file: string): UpgradeRecord {
  const packed = readFileSync(new URL(file, RECORDS));
  return JSON.parse(String(file.endsWith(".br") ? brotliDecompressSync(packed) : gunzipSync(packed))) as UpgradeRecord;
}

/** Loads the record of an old version, moves the record's times to now, and migrates the database as a starting hub does. */
export async function loadRecord(test: TestDatabase, record: UpgradeRecord): Promise<void> {
  await loadAsRecorded(test, record);
  await migrate(test.url);
}

/** Loads the record of an old version into a database with the schema of that version. */
export async function loadAsRecorded({ database, url }: TestDatabase, record: UpgradeRecord): Promise<void> {
  const { db } = database;
  await db.execute(sql`drop schema if exists drizzle cascade`);
  await db.execute(sql`drop schema public cascade`);
  await db.execute(sql`create schema public`);
  await migrateUpTo(url, record.migrations);
  for (const table of await parentsFirst(db, Object.keys(record.tables))) {
    const text = JSON.stringify(record.tables[table]);
    const rows = SIGNED.has(table) ? text : factsMoved(text, ageOf(record));
    const columns = sql.join(await columnsOf(db, table), sql`, `);
    await db.execute(sql`
      insert into ${sql.identifier(table)} (${columns})
      select ${columns} from json_populate_recordset(null::${sql.identifier(table)}, ${rows}::json)`);
  }
  await restoreSequences(db);
  await bringToNow(db, record);
}

/** The tables whose rows are signed or in the hash chain of the audit, so that their times stay as they are. */
const SIGNED: ReadonlySet<string> = new Set([
  "sanitization_records",
  "sanitization_validations",
  "audit_logs",
  "audit_seals",
]);

/** Returns the columns of a table that PostgreSQL does not compute itself. */
async function columnsOf(db: Db, table: string) {
  const { rows } = await db.execute<{ column: string }>(sql`
    select column_name as column from information_schema.columns
    where table_schema = 'public' and table_name = ${table} and is_generated = 'NEVER'`);
  return rows.map(({ column }) => sql.identifier(column));
}

const ageOf = (record: UpgradeRecord): number => Date.now() - Date.parse(record.recordedAt);

/** Moves the times in the upgrade record's JSON values by the age of the record. */
const factsMoved = (json: string, age: number): string =>
  json.replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, (time) => new Date(Date.parse(time) + age).toISOString());

/**
 * Returns the simulated region's state, with its times moved by the age of the upgrade record. The simulated region stores times as milliseconds since
 * 1970. `regionOf` changes only numbers that mean a time between the years 2023 and 2049.
 */
export const regionOf = (record: UpgradeRecord): State =>
  JSON.parse(
    JSON.stringify(record.region, (_key, value: unknown) =>
      typeof value === "number" && value > 1.7e12 && value < 2.5e12 ? value + ageOf(record) : value,
    ),
  ) as State;

/** Creates the database schema of the old version, by only the migrations that the old version had. */
async function migrateUpTo(url: string, tags: readonly string[]): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "muster-migrations-"));
  try {
    await cp(MIGRATIONS, folder, { recursive: true });
    const file = join(folder, "meta/_journal.json");
    const journal = JSON.parse(await readFile(file, "utf8")) as { entries: { tag: string }[] };
    const entries = journal.entries.filter((entry) => tags.includes(entry.tag));
    if (entries.length !== tags.length) throw new Error(`a migration among ${tags.join(", ")} is gone`);
    await writeFile(file, JSON.stringify({ ...journal, entries }));
    await migrate(url, folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Returns the tables in an order in which each foreign key already finds its target. */
async function parentsFirst(db: Db, tables: readonly string[]): Promise<string[]> {
  const { rows } = await db.execute<{ child: string; parent: string }>(sql`
    select conrelid::regclass::text as child, confrelid::regclass::text as parent from pg_constraint where contype = 'f'`);
  const ordered: string[] = [];
  const add = (table: string): void => {
    if (ordered.includes(table)) return;
    for (const { child, parent } of rows) if (child === table && parent !== table) add(parent);
    ordered.push(table);
  };
  for (const table of tables) add(table);
  return ordered.filter((table) => tables.includes(table));
}

async function restoreSequences(db: Db): Promise<void> {
  const { rows } = await db.execute<{ table: string; column: string }>(sql`
    select table_name as table, column_name as column from information_schema.columns
    where table_schema = 'public' and column_default like 'nextval(%'`);
  for (const { table, column } of rows) {
    await db.execute(sql`
      select setval(pg_get_serial_sequence(${table}, ${column}), coalesce(max(${sql.identifier(column)}), 0) + 1, false)
      from ${sql.identifier(table)}`);
  }
}

/** Moves all times in the database by the record's age, so that future deadlines of the recording are in the future now. */
async function bringToNow(db: Db, record: UpgradeRecord): Promise<void> {
  const { rows } = await db.execute<{ table: string; column: string }>(sql`
    select table_name as table, column_name as column from information_schema.columns
    where table_schema = 'public' and data_type = 'timestamp with time zone'`);
  for (const { table, column } of rows) {
    if (SIGNED.has(table)) continue;
    const name = sql.identifier(column);
    await db.execute(
      sql`update ${sql.identifier(table)} set ${name} = ${name} + (now() - ${record.recordedAt}::timestamptz)`,
    );
  }
}
