import { describe, expect, it } from "vitest";
import document from "../../../docs/openapi.json" with { type: "json" };
import { EVENT_TYPES, matchesPattern } from "../../../shared/events.ts";
import { verbFlag } from "../operation.ts";
import { shippedOperations } from "../table/shipped.ts";
import { filtersOf } from "../verbs/read.ts";
import { NOUN_LIST } from "./index.ts";

/** The lists of the API that no noun shows, each with the reason. */
const NO_NOUN: Readonly<Record<string, string>> = {
  listSanitizationHeads: "is for programs that keep the heads of the records' chains",
  exportNodeLifecycle: "is the history of one node, which logs shows",
};
/** The flags of `get` that are not filters. */
const TAKEN = [
  "output",
  "color",
  "columns",
  "headers",
  "all",
  "watch",
  "hub",
  "token-file",
  "ca-file",
  "context",
  "help",
];

interface Schema {
  readonly $ref?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
}
const SCHEMAS = document.components.schemas as Readonly<Record<string, Schema>>;
const resolved = (schema: Schema = {}): Schema =>
  schema.$ref === undefined ? schema : resolved(SCHEMAS[schema.$ref.split("/").at(-1) ?? ""]);

/** The schema of the items that an operation of the API answers, or undefined if it answers no list. */
function itemOf(id: string): Schema | undefined {
  const operations = Object.values(document.paths).flatMap((one) => Object.values(one)) as {
    operationId: string;
    responses: Record<string, { content?: Record<string, { schema?: Schema }> }>;
  }[];
  const { responses = {} } = operations.find(({ operationId }) => operationId === id) ?? {};
  const [answer] = Object.entries(responses).flatMap(([code, { content }]) =>
    code.startsWith("2") ? (content?.["application/json"]?.schema ?? []) : [],
  );
  const { items } = resolved(answer).properties ?? {};
  return items === undefined ? undefined : resolved(resolved(items).items);
}

function hasField(schema: Schema, field: string): boolean {
  const { properties, anyOf = [] } = resolved(schema);
  const [first = "", ...rest] = field.split(".");
  const found = properties?.[first];
  if (found !== undefined) return rest.length === 0 || hasField(found, rest.join("."));
  return anyOf.some((one) => hasField(one, field));
}

describe("the nouns of the program", () => {
  it("show every list of the API, or there is a reason not to", () => {
    const lists = shippedOperations().filter(({ method, id }) => method === "GET" && itemOf(id) !== undefined);
    expect(lists.length).toBeGreaterThan(20);
    const shown = NOUN_LIST.flatMap((noun) => noun.lists);
    const missing = lists.map(({ id }) => id).filter((id) => !shown.includes(id));
    expect(missing.toSorted()).toEqual(Object.keys(NO_NOUN).toSorted());
  });

  it("have names that no other noun has", () => {
    const names = NOUN_LIST.flatMap(({ plural, singular, short }) => [...new Set([plural, singular, ...short])]);
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
  });

  it.each(NOUN_LIST.map((noun) => [noun.plural, noun] as const))(
    "%s: every column, id and event exists in the API",
    (_, noun) => {
      for (const list of noun.lists) {
        const item = itemOf(list) ?? expect.fail(list);
        for (const field of [noun.id, noun.label, ...noun.columns.map((column) => column.field)])
          expect([field, hasField(item, field)]).toEqual([field, true]);
      }
      for (const id of noun.reads) expect(shippedOperations().map((one) => one.id)).toContain(id);
      for (const pattern of noun.events)
        expect(
          EVENT_TYPES.some((type) => matchesPattern(pattern, type)),
          pattern,
        ).toBe(true);
    },
  );

  it.each(NOUN_LIST.map((noun) => [noun.plural, noun] as const))(
    "%s: no filter has the flag of something else",
    (_, noun) => {
      const flags = [...filtersOf(noun).map(verbFlag), ...(noun.parent === undefined ? [] : [noun.parent.flag])];
      expect(flags.filter((flag) => TAKEN.includes(flag))).toEqual([]);
      expect(new Set(flags).size).toBe(flags.length);
    },
  );
});
