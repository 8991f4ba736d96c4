/**
 * Reads CSV by RFC 4180 as spreadsheets write it: with commas, semicolons or tabs, with or without a byte order mark. A CSV library would be larger
 * than this CSV reader, and would know neither the checks of the columns nor the line of each fault.
 */
import type { Check } from "./checks.ts";

export interface CsvColumn {
  readonly name: string;
  readonly check: Check;
  readonly required: boolean;
}

export interface CsvFault {
  /** The number of the line in the CSV text; the first line is 1. */
  readonly line: number;
  /** The name of the column of the faulty value, or null if the whole line of the CSV text is faulty. */
  readonly column: string | null;
  readonly message: string;
}

export interface CsvRow {
  readonly line: number;
  readonly values: Readonly<Record<string, string>>;
}

export interface CsvTable {
  readonly rows: readonly CsvRow[];
  readonly faults: readonly CsvFault[];
}

interface Line {
  readonly line: number;
  readonly fields: readonly string[];
}

const separatorOf = (text: string): string => {
  const first = text.split("\n", 1)[0] ?? "";
  return ["\t", ";"].find((one) => first.includes(one)) ?? ",";
};

/**
 * Splits a text into lines of fields. A quoted field that is never closed ends with the text, and `open` is the number of the line at which its row
 * begins.
 */
function linesOf(text: string, separator: string): { lines: Line[]; open: number | null } {
  const lines: Line[] = [];
  let fields: string[] = [];
  let field = "";
  let quoted = false;
  let line = 1;
  let began = 1;
  const endField = (): void => {
    fields.push(field.trim());
    field = "";
  };
  const endLine = (): void => {
    endField();
    if (fields.some((one) => one !== "")) lines.push({ line: began, fields });
    fields = [];
  };
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at] ?? "";
    if (char === "\n") line += 1;
    if (quoted) {
      if (char !== '"') field += char;
      else if (text[at + 1] === '"') {
        field += '"';
        at += 1;
      } else quoted = false;
    } else if (char === '"' && field.trim() === "") quoted = true;
    else if (char === separator) endField();
    else if (char === "\n") {
      endLine();
      began = line;
    } else if (char !== "\r") field += char;
  }
  endLine();
  return { lines, open: quoted ? began : null };
}

function headFaults(head: Line, columns: readonly CsvColumn[]): CsvFault[] {
  const known = columns.map(({ name }) => name);
  const fault = (column: string, message: string): CsvFault => ({ line: head.line, column, message });
  return [
    ...head.fields
      .filter((name) => !known.includes(name))
      .map((name) => fault(name, `is no column. The columns are ${known.join(", ")}`)),
    ...head.fields.filter((name, n) => head.fields.indexOf(name) !== n).map((name) => fault(name, "is there twice")),
    ...columns
      .filter(({ name, required }) => required && !head.fields.includes(name))
      .map(({ name }) => fault(name, "is missing in the first line, which names the columns")),
  ];
}

function rowFaults({ line, fields }: Line, head: Line, columns: readonly CsvColumn[]): CsvFault[] {
  if (fields.length > head.fields.length) {
    const message = `has ${fields.length} fields, and the first line names ${head.fields.length} columns`;
    return [{ line, column: null, message }];
  }
  return columns.flatMap(({ name, check, required }) => {
    const at = head.fields.indexOf(name);
    const value = at < 0 ? "" : (fields[at] ?? "");
    const message = value === "" && !required ? undefined : check(value);
    return message === undefined ? [] : [{ line, column: name, message }];
  });
}

/** Reads a table whose first line names its columns, and checks each field. */
export function readCsv(text: string, columns: readonly CsvColumn[]): CsvTable {
  const plain = text.replace(/^\uFEFF/, "");
  const { lines, open } = linesOf(plain, separatorOf(plain));
  if (open !== null)
    return { rows: [], faults: [{ line: open, column: null, message: "has a quote that nothing closes" }] };
  const [first, ...rest] = lines;
  if (first === undefined) return { rows: [], faults: [] };
  const head = { ...first, fields: first.fields.map((name) => name.toLowerCase()) };
  const faults = headFaults(head, columns);
  if (faults.length > 0) return { rows: [], faults };
  return {
    rows: rest.map(({ line, fields }) => ({
      line,
      values: Object.fromEntries(head.fields.map((name, n) => [name, fields[n] ?? ""])),
    })),
    faults: rest.flatMap((one) => rowFaults(one, head, columns)),
  };
}

/** Finds values that are in more than one row, for a column whose values must differ in all rows. */
export function repeatedIn(rows: readonly CsvRow[], column: string): CsvFault[] {
  const seen = new Map<string, number>();
  return rows.flatMap(({ line, values }) => {
    const value = values[column] ?? "";
    const before = seen.get(value);
    if (value === "") return [];
    if (before !== undefined) return [{ line, column, message: `${value} is in line ${before} already` }];
    seen.set(value, line);
    return [];
  });
}
