/**
 * The hub loads Drizzle in its CommonJS form, and only the parts that the hub uses. Drizzle's ES form has about a hundred modules. For each import of
 * a Drizzle module in ES form, Node parses the 130 kB of exports in drizzle-orm's package.json. Parsing drizzle-orm's package.json took half of the
 * hub's start time (docs/benchmarks.md).
 */
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const builder: typeof import("drizzle-orm") = require("drizzle-orm");
const postgres: typeof import("drizzle-orm/pg-core") = require("drizzle-orm/pg-core");
const driver: typeof import("drizzle-orm/node-postgres") = require("drizzle-orm/node-postgres");
const migrator: typeof import("drizzle-orm/node-postgres/migrator") = require("drizzle-orm/node-postgres/migrator");
const migrations: typeof import("drizzle-orm/migrator") = require("drizzle-orm/migrator");

export const {
  and,
  asc,
  count,
  DrizzleQueryError,
  desc,
  eq,
  getTableColumns,
  getTableName,
  gt,
  gte,
  inArray,
  isNotNull,
  isNull,
  like,
  lt,
  lte,
  isTable,
  ne,
  notInArray,
  or,
  sql,
} = builder;
export const {
  bigint,
  bigserial,
  boolean,
  check,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  text,
  timestamp,
  union,
  unique,
  uniqueIndex,
  uuid,
} = postgres;
export const { drizzle } = driver;
export const { migrate: applyMigrations } = migrator;
export const { readMigrationFiles } = migrations;

export type { SQL, SQLWrapper } from "drizzle-orm";
export type { NodePgDatabase } from "drizzle-orm/node-postgres";
export type { AnyPgColumn, PgTable } from "drizzle-orm/pg-core";
