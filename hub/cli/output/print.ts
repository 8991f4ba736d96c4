import { UsageError } from "../errors.ts";
import type { Hub, Item } from "../hub.ts";
import type { Io } from "../io.ts";
import type { Column, Noun } from "../nouns/noun.ts";
import { ageOf, at, cellOf } from "./cells.ts";
import { csvText } from "./csv.ts";
import { FORMS, type Form } from "./form.ts";
import { tableText } from "./table.ts";

/** The values of the flags that say how a command prints the hub's answer. */
export interface Printing {
  readonly form: Form;
  readonly columns: readonly string[] | null;
  readonly headers: boolean;
  readonly colours: boolean;
}

const WIDEST = 60;

export function printingOf(flags: Readonly<Record<string, unknown>>, io: Io): Printing {
  const form = FORMS.find((one) => one === flags["output"]);
  if (form === undefined) throw new UsageError(`--output takes ${FORMS.join(", ")}.`);
  const columns = typeof flags["columns"] === "string" ? flags["columns"].split(",") : null;
  return { form, columns, headers: flags["headers"] !== false, colours: hasColours(flags["color"], io) };
}

/** Colours are for a person at a terminal, unless the flag or the environment says otherwise (https://no-color.org). */
export function hasColours(flag: unknown, { env, isTerminal }: Io): boolean {
  if (flag === "always" || flag === "never") return flag === "always";
  return isTerminal && !env["NO_COLOR"] && env["TERM"] !== "dumb";
}

/** A command that watches changes prints each object as soon as it changes, so with `-o json` it prints one line of JSON for each object. */
export const lineWise = (printing: Printing): Printing =>
  printing.form === "json" ? { ...printing, form: "jsonl" } : printing;

export interface Shown {
  readonly noun: Noun;
  readonly items: readonly Item[];
  /** What `-o json` and `-o yaml` print: a list, or one object. */
  readonly answer: unknown;
}

/** Returns objects as text, in the output format that the flags name. */
export async function textOf(shown: Shown, printing: Printing, hub: Hub, io: Io): Promise<string> {
  const { noun, items, answer } = shown;
  switch (printing.form) {
    case "json":
      return `${JSON.stringify(answer, null, 2)}\n`;
    case "jsonl":
      return items.map((item) => `${JSON.stringify(item)}\n`).join("");
    case "yaml": {
      const { stringify } = await import("yaml");
      return stringify(answer, { aliasDuplicateObjects: false });
    }
    case "name":
      return items.map((item) => `${noun.singular}/${cellOf(item[noun.label] ?? item[noun.id])}\n`).join("");
    default:
      return rowsText(shown, printing, await siteNames(shown, printing, hub), io);
  }
}

const columnsOf = (noun: Noun, { columns, form }: Printing): readonly Column[] =>
  columns !== null
    ? columns.map((field) => noun.columns.find(({ head }) => head === field) ?? { head: field, field })
    : noun.columns.filter((column) => form !== "table" || column.wide !== true);

/** The names of sites are read only for a table that shows a site. */
async function siteNames({ noun, items }: Shown, printing: Printing, hub: Hub): Promise<ReadonlyMap<unknown, string>> {
  const shows = columnsOf(noun, printing).some((column) => column.as === "site");
  if (!shows || !items.some((item) => typeof item["site_id"] === "string")) return new Map();
  try {
    return new Map((await hub.all("listMaasSites")).map((site) => [site["id"], String(site["name"])]));
  } catch (error) {
    // A caller without the right to list sites sees their ids.
    if (error instanceof Error && error.name === "Refused") return new Map();
    throw error;
  }
}

function rowsText({ noun, items }: Shown, printing: Printing, sites: ReadonlyMap<unknown, string>, io: Io): string {
  const columns = columnsOf(noun, printing);
  const cell = ({ field, as }: Column, item: Item): string => {
    const value = at(item, field);
    if (as === "site") return sites.get(value) ?? cellOf(value);
    return as === "age" && io.isTerminal && typeof value === "string" ? ageOf(value, io.now()) : cellOf(value);
  };
  const heads = columns.map(({ head }) => head);
  const rows = items.map((item) => columns.map((column) => cell(column, item)));
  if (printing.form === "csv") {
    const bare = rows.map((row) => row.map((one) => (one === "-" ? "" : one)));
    return csvText(printing.headers ? [columns.map(({ field }) => field), ...bare] : bare);
  }
  if (rows.length === 0) return `There are no ${noun.plural}.\n`;
  const last = columns.length - 1;
  const short = (text: string, index: number): string =>
    text.length > WIDEST && index !== last && printing.form === "table" ? `${text.slice(0, WIDEST - 1)}…` : text;
  return tableText(
    heads,
    rows.map((row) => row.map(short)),
    printing,
  );
}
