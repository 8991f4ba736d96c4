/**
 * Production code must write and read each column of the hub's database. The test searches the code for each column's name, so the test misses an
 * unused column whose name occurs elsewhere in the code.
 */
import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { getTableColumns, type PgTable } from "../hub/db/orm.ts";
import * as schema from "../hub/db/schema/index.ts";

/** Database columns that production code writes and never reads, each with the reason why the column exists. */
const WRITTEN_ONLY: Readonly<Record<string, string>> = {
  "node_inventories.reported_at": "An engineer who looks into the database sees the age of an inventory.",
  "nodes.access_method": "It is a constant of lifecycle 8.1.",
  "nodes.ssh_username": "It is a constant of lifecycle 8.1.",
  "page_sessions.state_sha256": "It is unique, so that one sign-in at the provider makes one session.",
  "workflow_events.claimed_at": "Tests prove with it that claims of two hubs did not overlap.",
};

const ROOT = fileURLToPath(new URL("..", import.meta.url));
/** The hub's code without comments and type members, because a column's name in a comment or type is no use of the column. */
const CODE = globSync("hub/**/*.ts", { cwd: ROOT })
  .filter((path) => !/[.](test|fixture)[.]ts$|^hub\/db\/(schema|migrations)\//.test(path))
  .map((path) => readFileSync(`${ROOT}${path}`, "utf8"))
  .map((text) => text.replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "").replace(/readonly \w+\??:/g, ""))
  .join("\n");

interface Column {
  readonly property: string;
  readonly name: string;
  readonly hasDefault: boolean;
}

function usesIn(code: string): (column: Column) => { readonly written: boolean; readonly read: boolean } {
  const inserts = [...code.matchAll(/insert into[^(]*\(([^)]*)\)/g)].map(([, columns]) => columns).join(" ");
  const statements = [...code.matchAll(/(?:sql(?:<[^`]*?>)?|query\w*\()\s*`([^`]*)`/g)]
    .map(([, statement = ""]) => statement.replace(/insert into[^(]*\([^)]*\)/g, ""))
    .join("\n");
  return ({ property, name, hasDefault }) => ({
    written:
      hasDefault ||
      new RegExp(`(?<![.\\w])${property}(?=[:,]|\\s*\\})|"${property}"`).test(code) ||
      new RegExp(`\\b${name}\\s*=`).test(statements) ||
      new RegExp(`\\b${name}\\b`).test(inserts),
    read:
      new RegExp(`[.]${property}\\b|"${property}"`).test(code) ||
      new RegExp(`\\b${name}\\b(?!\\s*=[^=])|[.]${name}\\b`).test(statements),
  });
}

const isTable = (value: unknown): value is PgTable =>
  value !== null && typeof value === "object" && Symbol.for("drizzle:IsDrizzleTable") in value;
const nameOf = (table: PgTable): string => Reflect.get(table, Symbol.for("drizzle:Name"));
const COLUMNS = Object.values<unknown>(schema)
  .filter(isTable)
  .flatMap((table) =>
    Object.entries(getTableColumns(table)).map(([property, { name, hasDefault, generated }]) => ({
      of: `${nameOf(table)}.${name}`,
      property,
      name,
      // PostgreSQL itself writes a generated column, so production code need not write the column.
      hasDefault: hasDefault || generated !== undefined,
    })),
  );

describe("a column", () => {
  const uses = usesIn(CODE);

  it("is written by production code, or has a default", () => {
    expect(COLUMNS.length).toBeGreaterThan(400);
    expect(COLUMNS.filter((column) => !uses(column).written).map(({ of }) => of)).toEqual([]);
  });

  it("is read by production code, or stands in WRITTEN_ONLY with the reason", () => {
    const unread = COLUMNS.filter((column) => !uses(column).read).map(({ of }) => of);
    expect(unread.sort()).toEqual(Object.keys(WRITTEN_ONLY).sort());
  });

  it.each([
    ["an object", ".values({ rackUnit: 4 })", { written: true, read: false }],
    ["a shorthand", ".set({ a, rackUnit })", { written: true, read: false }],
    ["an insert", "sql`insert into nodes (id, rack_unit) values (1, 2)`", { written: true, read: false }],
    ["an update", "sql`update nodes set rack_unit = 2`", { written: true, read: false }],
    ["a property", "row.rackUnit", { written: false, read: true }],
    ["a select", "sql`select n.rack_unit from nodes n`", { written: false, read: true }],
    ["no use", "a field rack_unit of the API", { written: false, read: false }],
  ])("is found in %s", (_, code, expected) => {
    expect(usesIn(code)({ property: "rackUnit", name: "rack_unit", hasDefault: false })).toEqual(expected);
  });
});
