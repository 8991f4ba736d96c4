import { describe, expect, it } from "vitest";
import { KNOWN_MIGRATIONS, migrationSteps } from "../hub/db/migrate.ts";

/**
 * During an upgrade without stopping, hubs of the previous version work on the schema of the next one (docs/operate.md). A migration therefore takes
 * nothing away that an older hub reads or writes. The migrations up to the named one belong to an upgrade for which all hubs stop.
 */
const LAST_WITH_A_STOP = "0021_what_nothing_reads";

const TAKES_AWAY: readonly (readonly [string, RegExp])[] = [
  ["a table or view is dropped", /^drop (table|view|schema|type|sequence)\b/],
  ["a column is dropped", /^alter table .* drop column\b/],
  ["something is renamed", /^alter .* rename\b/],
  ["a column gets another type", /^alter table .* alter column .* (set data )?type\b/],
  ["a column must not be null any more", /^alter table .* alter column .* set not null\b/],
  ["a column loses its default", /^alter table .* alter column .* drop default\b/],
  [
    "a new column has no value for the rows of older hubs",
    /^alter table .* add column (?!.*\bdefault\b).*\bnot null\b/,
  ],
];

/** A constraint may be replaced by one of the same name, for example by one that allows more values. */
const DROPPED = /^alter table (\S+) drop constraint (?:if exists )?(\S+?);?$/;

function faultsOf(statements: readonly string[]): string[] {
  const plain = statements.map((statement) =>
    statement
      .replaceAll(/^\s*--.*$/gm, "")
      .replaceAll(/\s+/g, " ")
      .trim()
      .toLowerCase(),
  );
  return plain.flatMap((statement) => {
    const [, table, constraint] = DROPPED.exec(statement) ?? [];
    if (table !== undefined)
      return plain.some((other) => other.startsWith(`alter table ${table} add constraint ${constraint} `))
        ? []
        : [`a constraint is dropped: ${statement}`];
    return TAKES_AWAY.filter(([, form]) => form.test(statement)).map(([what]) => `${what}: ${statement}`);
  });
}

describe("a migration", () => {
  const steps = migrationSteps();
  const named = KNOWN_MIGRATIONS.map(({ tag, when }) => ({ tag, steps: steps.find((one) => one.when === when) }));
  const first = named.findIndex(({ tag }) => tag === LAST_WITH_A_STOP) + 1;

  it.each(named.slice(first))("$tag takes nothing away from an older hub", ({ steps: step }) => {
    expect(step?.statements.length).toBeGreaterThan(0);
    expect(faultsOf(step?.statements ?? [])).toEqual([]);
  });

  it("that needed a stop of all hubs is recognised", () => {
    expect(faultsOf(named[first - 1]?.steps?.statements ?? []).map((fault) => fault.split(":")[0])).toEqual(
      Array(3).fill("a column is dropped"),
    );
  });

  it.each([
    'DROP TABLE "nodes";',
    'ALTER TABLE "nodes" DROP COLUMN "sku";',
    'ALTER TABLE "nodes" RENAME COLUMN "sku" TO "kind";',
    'ALTER TABLE "nodes" ALTER COLUMN "sku" SET DATA TYPE integer;',
    'ALTER TABLE "nodes" ALTER COLUMN "sku" SET NOT NULL;',
    'ALTER TABLE "nodes" ALTER COLUMN "sku" DROP DEFAULT;',
    'ALTER TABLE "nodes" ADD COLUMN "rack" text NOT NULL;',
    'ALTER TABLE "nodes" DROP CONSTRAINT "nodes_check";',
  ])("with %s is refused", (statement) => expect(faultsOf([statement])).toHaveLength(1));

  it.each([
    [['CREATE TABLE "racks" ("id" text PRIMARY KEY NOT NULL);']],
    [['ALTER TABLE "nodes" ADD COLUMN "rack" text;']],
    [['ALTER TABLE "nodes" ADD COLUMN "rack" text DEFAULT \'\' NOT NULL;']],
    [['ALTER TABLE "nodes" DROP CONSTRAINT "c";', 'ALTER TABLE "nodes" ADD CONSTRAINT "c" CHECK (true);']],
    [['DROP INDEX "nodes_idx";']],
  ])("with %j passes", (statements) => expect(faultsOf(statements)).toEqual([]));
});
