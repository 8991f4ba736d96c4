import type { Field, Operation } from "./description.ts";
import { flagOf, typesOf } from "./description.ts";

type Row = Readonly<Record<string, unknown>>;

/** Columns of lists, in this order, as far as the items have them; what else they have is shown by `--output json`. */
const COLUMNS = [
  ["hostname", "name", "url", "command"],
  ["onboarding_id", "decommission_id", "batch_id", "id"],
  ["status", "state"],
  ["current_stage", "type"],
  ["failure_class"],
  ["error_code"],
  ["next_verb", "schedulable", "counts"],
  ["updated_at", "requested_at", "created_at"],
] as const;
/** Of histories. */
const EVENT_COLUMNS = [
  ["occurred_at", "time", "observed_at"],
  ["stage", "type"],
  ["attempt", "from_status"],
  ["status", "to_status", "subject"],
  ["message", "data"],
] as const;
const WIDEST = 60;

const isRow = (value: unknown): value is Row => value !== null && typeof value === "object" && !Array.isArray(value);
const isRows = (value: unknown): value is readonly Row[] => Array.isArray(value) && value.every(isRow);
const text = (value: unknown): string =>
  value === null || value === undefined ? "-" : typeof value === "object" ? JSON.stringify(value) : String(value);
/** An answer may quote what a host or an operator wrote: nothing of it may steer the terminal. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const plain = (value: string): string => value.replace(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/g, "?");
const short = (value: string): string => (value.length > WIDEST ? `${value.slice(0, WIDEST - 1)}…` : value);

function columnsOf(rows: readonly Row[]): string[] {
  const has = (name: string): boolean => rows.some((row) => row[name] !== undefined);
  const columns = EVENT_COLUMNS[0].some(has) ? EVENT_COLUMNS : COLUMNS;
  const known = columns.flatMap((names) => names.find(has) ?? []);
  return known.length > 1 ? known : Object.keys(rows[0] ?? {}).slice(0, 6);
}

const cell = (name: string, row: Row): string => {
  const line = plain(text(row[name])).replaceAll("\n", " ");
  return name === "message" ? line : short(line);
};

function tableOf(rows: readonly Row[]): string {
  if (rows.length === 0) return "None.\n";
  const columns = columnsOf(rows);
  const cells = [columns, ...rows.map((row) => columns.map((name) => cell(name, row)))];
  const widths = columns.map((_, index) => Math.max(...cells.map((row) => row[index]?.length ?? 0)));
  const lines = cells.map((row) =>
    row
      .map((cell, index) => cell.padEnd(widths[index] ?? 0))
      .join("  ")
      .trimEnd(),
  );
  return `${lines.join("\n")}\n`;
}

/** An answer for people: a list as a table, a record as lines, lists inside it as tables of their own. */
export function forPeople(answer: unknown): string {
  if (!isRow(answer)) return `${plain(text(answer))}\n`;
  const { items } = answer;
  if (isRows(items)) {
    const more = answer["next_cursor"];
    return tableOf(items) + (typeof more === "string" ? `\nMore: --cursor ${plain(more)}, or --all\n` : "");
  }
  const entries = Object.entries(answer);
  const lists = entries.filter(([, value]) => isRows(value) && value.length > 0);
  const facts = entries.filter(([name]) => !lists.some(([list]) => list === name));
  const width = Math.max(0, ...facts.map(([name]) => name.length));
  const lines = facts.map(([name, value]) => `${name.padEnd(width)}  ${plain(text(value))}`);
  return `${[lines.join("\n"), ...lists.map(([name, rows]) => `\n${name}\n${tableOf(rows as Row[]).trimEnd()}`)].join("\n")}\n`;
}

/** A problem of the API (RFC 9457): what happened, to what, and what to do next stand in its detail. */
export function problemText(status: number, problem: unknown): string {
  if (!isRow(problem)) return `The hub answered ${status} and no problem document.\n`;
  const errors = isRows(problem["errors"]) ? problem["errors"] : [];
  const lines = (errors.length > 1 ? errors : []).map(
    (error) => `  ${text(error["pointer"])}: ${text(error["message"])}`,
  );
  return `${plain([`${text(problem["code"])} (${status}): ${text(problem["detail"])}`, ...lines].join("\n"))}\n`;
}

export function overviewText(operations: readonly Operation[]): string {
  const groups = Map.groupBy(operations, (operation) => operation.group);
  const width = Math.max(...operations.map((operation) => operation.command.length));
  const parts = [...groups].map(([group, members]) =>
    [group, ...members.map((one) => `  ${one.command.padEnd(width)}  ${one.summary}`)].join("\n"),
  );
  return `${parts.join("\n\n")}\n`;
}

const typesText = ({ schema }: Field): string => [...new Set(typesOf(schema))].join(" | ") || "json";

export function helpText(operation: Operation): string {
  const words = operation.arguments.map((name) => ` <${name}>`).join("");
  const line = (field: Field): string => {
    const values = field.schema.enum?.map(text).join(" | ") ?? typesText(field);
    const standard = field.schema.default === undefined ? "" : `, by default ${text(field.schema.default)}`;
    return `  --${flagOf(field)}  ${values}${field.required ? ", needed" : standard}`;
  };
  const fields = [...operation.query, ...(operation.body ?? [])].map(line);
  const body = operation.body === null ? [] : ["  --json  the whole body as JSON, @file or @- for standard input"];
  return `${[`muster ${operation.command}${words}`, operation.summary, ...fields, ...body].join("\n")}\n`;
}
