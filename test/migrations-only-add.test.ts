import { describe, expect, it } from "vitest";
import { KNOWN_MIGRATIONS, migrationSteps } from "../hub/db/migrate.ts";
import { faultsOf, rulesAfter } from "./support/migration-faults.ts";

/**
 * During an upgrade without stopping, hubs of the previous version work on the schema of the next one (docs/operate.md). A migration therefore takes
 * nothing away that an older hub reads or writes, and refuses nothing that an older hub writes. The migrations up to the named one belong to an upgrade
 * for which all hubs stop.
 */
const LAST_WITH_A_STOP = "0021_what_nothing_reads";

/** Checks of which the test cannot see that an older hub fulfils them, each with the reason why an older hub does. */
const FULFILLED: Readonly<Record<string, string>> = {
  '"api_tokens"."api_tokens_tenant_check"':
    "A hub without 0047_token_reach writes neither of the two roles that need a tenant, and writes no tenant.",
};

describe("a migration", () => {
  const steps = migrationSteps();
  const named = KNOWN_MIGRATIONS.map(({ tag, when }) => ({
    tag,
    statements: steps.find((one) => one.when === when)?.statements ?? [],
  }));
  const first = named.findIndex(({ tag }) => tag === LAST_WITH_A_STOP) + 1;
  const rules = named.map((_, index) => rulesAfter(named.slice(0, index).flatMap(({ statements }) => statements)));
  const judged = named
    .map(({ tag, statements }, index) => ({ tag, statements, before: rules[index] ?? rulesAfter([]) }))
    .slice(first);

  it.each(judged)("$tag takes nothing away from an older hub", ({ statements, before }) => {
    expect(statements.length).toBeGreaterThan(0);
    expect(faultsOf(statements, before).filter(({ rule }) => FULFILLED[rule ?? ""] === undefined)).toEqual([]);
  });

  it("is an exception only if the test could not judge its check otherwise", () => {
    const exceptions = judged.flatMap(({ statements, before }) => faultsOf(statements, before).map(({ rule }) => rule));
    expect(exceptions).toEqual(Object.keys(FULFILLED));
  });

  it("that needed a stop of all hubs is recognised", () => {
    const { statements = [] } = named[first - 1] ?? {};
    expect(faultsOf(statements, rulesAfter([])).map(({ fault }) => fault.split(":")[0])).toEqual(
      Array(3).fill("a column is dropped"),
    );
  });

  const OLDER = [
    `CREATE TABLE "nodes" (
      "sku" text, "mode" text NOT NULL, "unit" integer,
      CONSTRAINT "nodes_mode_check" CHECK ("mode" in ('maas', 'manual')),
      CONSTRAINT "nodes_unit_check" CHECK ("unit" > 0)
    );`,
    'CREATE UNIQUE INDEX "nodes_sku_key" ON "nodes" USING btree ("sku");',
    'CREATE INDEX "nodes_idx" ON "nodes" USING btree ("sku");',
  ];
  const before = rulesAfter(OLDER);
  const replaced = (check: string, to: string): string[] => [
    `ALTER TABLE "nodes" DROP CONSTRAINT "${check}";`,
    `ALTER TABLE "nodes" ADD CONSTRAINT "${check}" CHECK (${to});`,
  ];
  const NEW_RACK = 'ALTER TABLE "nodes" ADD COLUMN "rack" text;';
  const RACK_OF_OLDER_HUBS = 'ALTER TABLE "nodes" ADD COLUMN "rack" text DEFAULT \'\' NOT NULL;';

  it.each([
    [['DROP TABLE "nodes";']],
    [['ALTER TABLE "nodes" DROP COLUMN "sku";']],
    [['ALTER TABLE "nodes" RENAME COLUMN "sku" TO "kind";']],
    [['ALTER TABLE "nodes" ALTER COLUMN "sku" SET DATA TYPE integer;']],
    [['ALTER TABLE "nodes" ALTER COLUMN "sku" SET NOT NULL;']],
    [['ALTER TABLE "nodes" ALTER COLUMN "sku" DROP DEFAULT;']],
    [['ALTER TABLE "nodes" ADD COLUMN "rack" text NOT NULL;']],
    [['ALTER TABLE "nodes" DROP CONSTRAINT "nodes_check";']],
    [['CREATE UNIQUE INDEX "nodes_unit_key" ON "nodes" USING btree ("unit") WHERE "sku" = \'a\';']],
    [['ALTER TABLE "nodes" ADD CONSTRAINT "nodes_unit_key" UNIQUE("unit","sku");']],
    [[RACK_OF_OLDER_HUBS, 'CREATE UNIQUE INDEX "nodes_rack_key" ON "nodes" USING btree ("rack","unit");']],
    [[NEW_RACK, 'CREATE UNIQUE INDEX "nodes_rack_key" ON "nodes" USING btree (coalesce("rack", \'\'));']],
    [[NEW_RACK, 'CREATE UNIQUE INDEX "nodes_rack_key" ON "nodes" USING btree ("rack") NULLS NOT DISTINCT;']],
    [[NEW_RACK, 'ALTER TABLE "nodes" ADD CONSTRAINT "nodes_rack_key" UNIQUE NULLS NOT DISTINCT("rack");']],
    [['DROP INDEX "nodes_sku_key";']],
    [['ALTER TABLE "nodes" ADD CONSTRAINT "nodes_sku_check" CHECK ("sku" <> \'\');']],
    [['CREATE UNIQUE INDEX CONCURRENTLY "nodes_unit_key" ON "nodes" ("unit");']],
    [['ALTER TABLE "nodes" ADD CONSTRAINT "nodes_pk" PRIMARY KEY ("sku");']],
    [['ALTER TABLE "nodes" ADD CONSTRAINT "nodes_fk" FOREIGN KEY ("sku") REFERENCES "skus"("id");']],
    [replaced("nodes_mode_check", "\"mode\" in ('maas', 'adopted')")],
    [replaced("nodes_mode_check", "\"sku\" in ('maas', 'manual', 'adopted')")],
    [replaced("nodes_unit_check", '"unit" > 1')],
    [[NEW_RACK, 'ALTER TABLE "nodes" ADD CONSTRAINT "c" CHECK ("rack" is null or "unit" is not null);']],
  ])("with %j is refused", (statements) => expect(faultsOf(statements, before)).toHaveLength(1));

  it.each([
    [['CREATE TABLE "racks" ("id" text PRIMARY KEY NOT NULL);']],
    [[NEW_RACK]],
    [['-- Not done: drop table "nodes";\nALTER TABLE "nodes"\n  ADD COLUMN "rack" text;']],
    [[RACK_OF_OLDER_HUBS]],
    [['DROP INDEX "nodes_idx";', 'CREATE INDEX "nodes_idx" ON "nodes" USING btree ("sku","unit");']],
    [replaced("nodes_mode_check", "\"mode\" in ('adopted', 'maas', 'manual')")],
    [replaced("nodes_unit_check", '"unit" > 0')],
    [[NEW_RACK, 'ALTER TABLE "nodes" ADD CONSTRAINT "nodes_rack_check" CHECK ("rack" in (\'a\'));']],
    [[NEW_RACK, 'CREATE UNIQUE INDEX "nodes_rack_key" ON "nodes" USING btree ("sku","rack") WHERE "unit" > 3;']],
    [[NEW_RACK, 'ALTER TABLE "nodes" ADD CONSTRAINT "nodes_rack_key" UNIQUE("rack");']],
    [[NEW_RACK, 'ALTER TABLE "nodes" ADD CONSTRAINT "nodes_fk" FOREIGN KEY ("rack") REFERENCES "racks"("id");']],
    [
      [
        'CREATE TABLE "racks" ("id" text, CONSTRAINT "racks_check" CHECK ("id" <> \'\'));',
        'CREATE UNIQUE INDEX "racks_key" ON "racks" USING btree ("id");',
        'ALTER TABLE "racks" ADD CONSTRAINT "racks_fk" FOREIGN KEY ("id") REFERENCES "nodes"("rack");',
      ],
    ],
  ])("with %j passes", (statements) => expect(faultsOf(statements, before)).toEqual([]));
});
