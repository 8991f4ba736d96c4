import type { Field, Operation, Schema } from "./description.ts";
import { flagOf, namedBy, typesOf } from "./operation.ts";
import { plain } from "./output/plain.ts";

type Row = Readonly<Record<string, unknown>>;

/**
 * The columns, in order, of the table in which the command line shows an API list. A column appears in the table only if an item of the list has a
 * value for the column. `--output json` shows all fields of the items.
 */
const COLUMNS = [
  ["index"],
  ["hostname", "name", "url", "command", "credential"],
  ["interface"],
  ["ipv4_cidr"],
  ["selector_type"],
  ["selector_value"],
  ["id", "record_id", "onboarding_id", "decommission_id", "batch_id", "override_id", "node_id", "site_id"],
  ["mode", "kind", "profile"],
  ["status", "state", "outcome", "node_status"],
  ["verdict"],
  ["tenant"],
  ["login_user"],
  ["active"],
  ["drift_details.severity"],
  ["drift_details.rule"],
  ["current_stage", "type", "event_type"],
  ["failure_class", "reason"],
  ["error_code", "last_error_code", "last_failure_code"],
  ["next_verb", "schedulable", "counts", "verb"],
  ["api_base_url", "ok"],
  ["drifted"],
  ["acknowledged.reason", "acknowledged"],
  ["unreconciled", "would_move"],
  ["moved"],
  ["consecutive_failures", "move_limit"],
  ["in_service"],
  ["updated_at", "last_look_at", "since", "tripped_at", "requested_at", "created_at", "drift_details.detected_at"],
  ["ends_at"],
  ["waiting_for"],
  ["message", "drift_details.message", "next_action", "unschedulable_reasons", "skipped_because", "bootstrap_command"],
] as const;
/** The columns of a table that lists events or changes of a status. */
const EVENT_COLUMNS = [
  ["occurred_at", "time", "observed_at"],
  ["stage", "type"],
  ["attempt", "from_status"],
  ["status", "to_status", "subject"],
  ["message", "data"],
] as const;
/** The columns with long texts, such as `message`, which come last in a table and are never cut off. */
const WHOLE: readonly string[] = COLUMNS.at(-1) ?? [];
const WIDEST = 60;
const MOST_UNKNOWN = 6;

const isRow = (value: unknown): value is Row => value !== null && typeof value === "object" && !Array.isArray(value);
const isRows = (value: unknown): value is readonly Row[] => Array.isArray(value) && value.every(isRow);
const text = (value: unknown): string =>
  value === null || value === undefined ? "-" : typeof value === "object" ? jsonText(value) : String(value);
const jsonText = (value: object): string => {
  const words = Array.isArray(value) && value.every((one) => typeof one !== "object") ? value.join(", ") : null;
  return words === null ? JSON.stringify(value) : words || "-";
};
/** The name `a.b` means field b in the nested record a. */
const at = (row: Row, name: string): unknown =>
  name.split(".").reduce<unknown>((value, part) => (isRow(value) ? value[part] : undefined), row);
const short = (value: string): string => (value.length > WIDEST ? `${value.slice(0, WIDEST - 1)}…` : value);

function columnsOf(rows: readonly Row[]): string[] {
  const has = (name: string): boolean => rows.some((row) => ![undefined, null, ""].includes(at(row, name) as null));
  const columns = EVENT_COLUMNS[0].some(has) ? EVENT_COLUMNS : COLUMNS;
  const known = columns.flatMap((names) => names.find(has) ?? []);
  return known.length > 1 ? known : Object.keys(rows[0] ?? {}).slice(0, MOST_UNKNOWN);
}

const cell = (name: string, row: Row): string => {
  const line = plain(text(at(row, name))).replaceAll("\n", " ");
  return WHOLE.includes(name) ? line : short(line);
};

/** `inner` returns what follows a row's line. */
function tableOf(rows: readonly Row[], inner: (row: Row) => string = () => ""): string {
  if (rows.length === 0) return "None.\n";
  const columns = columnsOf(rows);
  const heads = columns.map((name) => name.split(".").at(-1) ?? name);
  const cells = [heads, ...rows.map((row) => columns.map((name) => cell(name, row)))];
  const widths = columns.map((_, index) => Math.max(...cells.map((row) => row[index]?.length ?? 0)));
  const [head = "", ...lines] = cells.map((row) =>
    row
      .map((cell, index) => cell.padEnd(widths[index] ?? 0))
      .join("  ")
      .trimEnd(),
  );
  return `${[head, ...lines.map((line, index) => line + inner(rows[index] ?? {}))].join("\n")}\n`;
}

/** A row of a table may contain a list, for example the hosts of a failure. The list inside a row follows the line of the row, as an indented table. */
const innerTables = (row: Row): string =>
  Object.values(row)
    .filter((value) => isRows(value) && value.length > 0)
    .map((value) => `\n${tableOf(value as readonly Row[]).trimEnd()}`.replaceAll("\n", "\n  "))
    .join("");

/** Replaces a nested record by its fields, which get names of the form `record.field`. */
const fieldsOf = ([name, value]: [string, unknown]): [string, unknown][] =>
  isRow(value) && Object.keys(value).length > 0
    ? Object.entries(value).map(([inner, one]) => [`${name}.${inner}`, one])
    : [[name, value]];

/** Returns an answer of the API as text: a list as a table, a record as lines, and lists inside a record as separate tables. */
export function forPeople(answer: unknown): string {
  if (!isRow(answer)) return `${plain(text(answer))}\n`;
  const { items, next_cursor: more, ...rest } = answer;
  if (isRows(items)) {
    // A count beside a list is null if the request did not ask for it.
    const known = Object.entries(rest).filter(([, value]) => value !== null);
    const counts = known.length === 0 ? "" : `${forPeople(Object.fromEntries(known))}\n`;
    return counts + tableOf(items) + (typeof more === "string" ? `\nMore: --cursor ${plain(more)}, or --all\n` : "");
  }
  const entries = Object.entries(answer).flatMap(fieldsOf);
  const lists = entries.filter(([, value]) => isRows(value) && value.length > 0);
  const facts = entries.filter(([name]) => !lists.some(([list]) => list === name));
  const width = Math.max(0, ...facts.map(([name]) => name.length));
  const lines = facts.map(([name, value]) => `${name.padEnd(width)}  ${plain(text(value))}`);
  return `${[lines.join("\n"), ...lists.map(([name, rows]) => `\n${name}\n${tableOf(rows as Row[], innerTables).trimEnd()}`)].join("\n")}\n`;
}

/**
 * Returns a problem document of the API (RFC 9457) as text. The detail of a problem document says what happened, to which object, and what to do
 * next.
 */
export function problemText(status: number, problem: unknown): string {
  if (!isRow(problem)) return `The hub answered ${status} and no problem document.\n`;
  const errors = isRows(problem["errors"]) ? problem["errors"] : [];
  const told = (error: Row): boolean => text(problem["detail"]).includes(text(error["message"]));
  const lines = (errors.every(told) ? [] : errors).map(
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

/**
 * Returns the type of a flag's value as the help shows it, for example `integer | null`, `active | disabled`, `list of string`, `{"user": string,
 * "pass": string}`.
 */
export function typeText(schema: Schema): string {
  const by = namedBy(schema);
  if (by !== undefined) return `id | ${by.name}`;
  const values = schema.const === undefined ? schema.enum : [schema.const];
  if (values !== undefined) return values.map(text).join(" | ");
  const { properties, items } = schema;
  if (properties !== undefined)
    return `{${Object.entries(properties)
      .map(([name, one]) => `"${name}": ${typeText(one)}`)
      .join(", ")}}`;
  if (items !== undefined) return `list of ${typeText(items)}`;
  return [...new Set(typesOf(schema))].join(" | ") || "json";
}

const standardText = (value: unknown): string =>
  value === null ? "none" : typeof value === "string" && value !== "" ? value : JSON.stringify(value);

export function helpText(operation: Operation): string {
  const words = operation.arguments.map(({ name }) => ` <${name}>`).join("");
  const places = operation.arguments.map(({ name, schema }) => `  <${name}>  ${typeText(schema)}`);
  const line = (field: Field): string => {
    const { default: value, description } = field.schema;
    const standard = value === undefined ? "" : `, by default ${standardText(value)}`;
    const about = description === undefined ? "" : `\n      ${description}`;
    return `  --${flagOf(field)}  ${typeText(field.schema)}${field.required ? ", needed" : standard}${about}`;
  };
  const fields = [...operation.query, ...(operation.body ?? [])].map(line);
  const kinds = operation.kinds.flatMap(({ when, fields: own }) => [
    `with --${flagOf(when)} ${typeText(when.schema)}:`,
    ...own.map((field) => `  ${line(field).replaceAll("\n", "\n  ")}`),
  ]);
  const body = operation.body === null ? [] : ["  --json  the whole body as JSON, @file or @- for standard input"];
  return `${[`muster ${operation.command}${words}`, operation.summary, ...places, ...fields, ...kinds, ...body].join("\n")}\n`;
}
