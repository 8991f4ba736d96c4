/** A person may edit a generated migration, so the test compares the tables that the migrations make with `hub/db/schema`. */
import { generateDrizzleJson, generateMigration } from "drizzle-kit/api";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as schema from "../../hub/db/schema/index.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";

/** An SQL query that returns each column, constraint and index of the database's public schema, as PostgreSQL writes it. */
const CATALOGUE = `
  select c.relname || '.' || a.attname as name,
      concat_ws(' ', format_type(a.atttypid, a.atttypmod), case when a.attnotnull then 'not null' end,
        'default ' || pg_get_expr(d.adbin, d.adrelid)) as what
    from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
    where c.relnamespace = 'public'::regnamespace and c.relkind = 'r'
  union all
  select 'constraint ' || conname, conrelid::regclass::text || ' ' || pg_get_constraintdef(oid) from pg_constraint
    where connamespace = 'public'::regnamespace and contype <> 'n'
  union all
  select 'index ' || indexname, indexdef from pg_indexes where schemaname = 'public'
  order by 1, 2`;

describe("the database that the migrations make", () => {
  let test: TestDatabase;
  let migrated: readonly string[];
  let described: readonly string[];
  beforeAll(async () => {
    test = await createTestDatabase();
    const { pool } = test.database;
    const catalogue = async () =>
      (await pool.query<{ name: string; what: string }>(CATALOGUE)).rows.map(({ name, what }) => `${name}: ${what}`);
    migrated = await catalogue();
    await pool.query("drop schema public cascade; create schema public");
    const statements = await generateMigration(generateDrizzleJson({}), generateDrizzleJson({ ...schema }));
    await pool.query(statements.join("\n"));
    described = await catalogue();
  });
  afterAll(() => test?.drop());

  it("has the tables, columns, defaults, constraints and indexes of hub/db/schema", () => {
    expect(described.length).toBeGreaterThan(300);
    expect(migrated.filter((line) => !described.includes(line))).toEqual([]);
    expect(described.filter((line) => !migrated.includes(line))).toEqual([]);
  });
});
