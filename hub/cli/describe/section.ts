import type { Item } from "../hub.ts";
import type { Column } from "../nouns/noun.ts";
import { ageOf, at, cellOf } from "../output/cells.ts";
import { tableText } from "../output/table.ts";

/** A section of what `muster describe` prints: facts, a table, or lines of advice. */
export type Section =
  | { readonly title: string; readonly facts: readonly (readonly [string, unknown])[] }
  | { readonly title: string; readonly columns: readonly Column[]; readonly rows: readonly Item[] }
  | { readonly title: string; readonly lines: readonly string[] };

export interface Described {
  readonly sections: readonly Section[];
  /** What `muster describe -o json` prints: the answers of the hub from which the sections were made. */
  readonly answer: Readonly<Record<string, unknown>>;
}

export interface Look {
  readonly colours: boolean;
  /** The present time, from which the text shows how long ago each time was; null if no person reads the output on a terminal. */
  readonly now: number | null;
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/;

const valueText = (value: unknown, { now }: Look): string =>
  typeof value === "string" && TIME.test(value) && now !== null ? `${value} (${ageOf(value, now)} ago)` : cellOf(value);

export const factsOf = (item: Item, fields: readonly (readonly [string, string])[]) =>
  fields.map(([label, field]) => [label, at(item, field)] as const);

/** All fields of an object as facts, where a record inside the object gives a fact for each of its fields. */
export const allFacts = (item: Item): (readonly [string, unknown])[] =>
  Object.entries(item).flatMap(([name, value]) =>
    value !== null && typeof value === "object" && !Array.isArray(value) && Object.keys(value).length > 0
      ? Object.entries(value).map(([inner, one]) => [`${name}.${inner}`, one] as const)
      : [[name, value] as const],
  );

export const sectionsText = (sections: readonly Section[], look: Look): string =>
  sections
    .map((section) => bodyText(section, look))
    .filter((text) => text !== "")
    .join("\n");

function bodyText(section: Section, look: Look): string {
  if ("lines" in section)
    return section.lines.length === 0
      ? ""
      : `${section.title}\n${section.lines.map((line) => `  ${cellOf(line)}\n`).join("")}`;
  if ("facts" in section) {
    const facts = section.facts.filter(([, value]) => ![null, undefined, ""].includes(value as null));
    if (facts.length === 0) return `${section.title}\n  none\n`;
    const rows = facts.map(([label, value]) => [`  ${label}`, valueText(value, look)]);
    return `${section.title}\n${tableText(["", ""], rows, { headers: false, colours: look.colours })}`;
  }
  if (section.rows.length === 0) return `${section.title}\n  none\n`;
  const rows = section.rows.map((row) =>
    section.columns.map(({ field, as }) => {
      const value = at(row, field);
      return as === "age" && typeof value === "string" && look.now !== null ? ageOf(value, look.now) : cellOf(value);
    }),
  );
  const table = tableText(
    section.columns.map(({ head }) => head),
    rows,
    { headers: true, colours: look.colours },
  );
  return `${section.title}\n${table.replace(/^(?=.)/gm, "  ")}`;
}
