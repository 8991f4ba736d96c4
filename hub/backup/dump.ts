import { createWriteStream } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import type { Client } from "pg";
import { to as copyTo } from "pg-copy-streams";
import { fileOfTable, type Manifest } from "./manifest.ts";
import { MIGRATIONS_TABLE, TABLES } from "./table-names.ts";

/** The texts of times and numbers in a backup do not depend on the settings of the server or of its user. */
export const PLAIN_TEXTS = `set timezone = 'UTC'; set datestyle = 'ISO, YMD'; set intervalstyle = 'postgres';
  set extra_float_digits = 1; set client_encoding = 'UTF8'; set statement_timeout = 0`;

export type Dumped = Pick<Manifest, "taken_at" | "migrations" | "tables" | "sequences">;

/**
 * Copies all tables of Muster as they were at one moment, while hubs go on working. The connection has an open transaction, from whose snapshot all
 * tables are copied. `inSnapshot` runs after the copies, in the same transaction as the copies.
 */
export async function dumpTables<T>(
  client: Client,
  folder: string,
  inSnapshot: () => Promise<T>,
  names: readonly string[] = TABLES,
): Promise<{ dumped: Dumped; found: T }> {
  await mkdir(join(folder, "tables"), { mode: 0o700 });
  await client.query(PLAIN_TEXTS);
  await client.query("begin isolation level repeatable read read only");
  const { rows } = await client.query<{ taken_at: Date }>("select now() as taken_at");
  const tables: Manifest["tables"] = [];
  for (const name of names) tables.push(await dumpTable(client, folder, name));
  const migrations = await client.query<{ when: string }>(
    `select created_at::text as when from ${MIGRATIONS_TABLE} order by id`,
  );
  const found = await inSnapshot();
  // A snapshot of PostgreSQL does not cover the values of sequences, so the backup reads these values last: each number in the copied rows was given
  // out before.
  const sequences = await sequencesOf(client);
  await client.query("commit");
  const takenAt = rows[0]?.taken_at;
  if (takenAt === undefined) throw new Error("The database told no time.");
  return {
    dumped: {
      taken_at: takenAt.toISOString(),
      migrations: migrations.rows.map(({ when }) => Number(when)),
      tables,
      sequences,
    },
    found,
  };
}

async function dumpTable(client: Client, folder: string, name: string): Promise<Manifest["tables"][number]> {
  const { rows } = await client.query<{ column: string }>(
    `select attname as column from pg_attribute
     where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = '' order by attnum`,
    [name],
  );
  const columns = rows.map(({ column }) => column);
  const copy = client.query(copyTo(`copy ${name} (${columns.map((one) => `"${one}"`).join(", ")}) to stdout`));
  await pipeline(copy, createGzip({ level: 1 }), createWriteStream(join(folder, fileOfTable(name)), { mode: 0o600 }));
  return { name, rows: copy.rowCount, columns };
}

async function sequencesOf(client: Client): Promise<Manifest["sequences"]> {
  const { rows: names } = await client.query<{ name: string }>(
    "select schemaname || '.' || sequencename as name from pg_sequences where schemaname in ('public', 'drizzle') order by 1",
  );
  const sequences: Manifest["sequences"] = [];
  for (const { name } of names) {
    const { rows } = await client.query<{ last_value: string; is_called: boolean }>(
      `select last_value::text, is_called from ${name}`,
    );
    for (const row of rows) sequences.push({ name, ...row });
  }
  return sequences;
}
