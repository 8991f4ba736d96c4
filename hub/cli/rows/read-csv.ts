import { CsvError, type Info, parse } from "csv-parse/sync";
import { UsageError } from "../errors.ts";
import type { Fault, Line, RowForm } from "./row-form.ts";

/** A file for a whole site has a few hundred kilobytes. */
const MOST_BYTES = 16 * 1024 * 1024;

export interface CsvRead {
  readonly lines: readonly Line[];
  readonly faults: readonly Fault[];
}

interface Record_ {
  readonly record: readonly string[];
  readonly info: Info;
}

/**
 * Reads the rows of a CSV file, as programs for tables write them: with or without a byte order mark, with commas or semicolons, and with names of
 * columns in the first line in any order.
 */
export function readCsv(text: string, form: Pick<RowForm, "columns">, file: string): CsvRead {
  if (Buffer.byteLength(text) > MOST_BYTES)
    throw new UsageError(`${file} is larger than ${MOST_BYTES / 1024 / 1024} MB.`);
  const [head, ...rows] = recordsOf(text, file);
  if (head === undefined)
    throw new UsageError(`${file} is empty. Its first line names the columns: ${columnText(form)}.`);
  const names = head.record.map((name) => name.trim().toLowerCase());
  const faults = faultsOfHead(names, form);
  if (faults.length > 0) return { lines: [], faults: faults.map((fault) => ({ ...fault, line: head.info.lines })) };
  const read = rows.map((row) => lineOf(row, names));
  return { lines: read.filter((one) => "values" in one), faults: read.filter((one) => "message" in one) };
}

const columnText = ({ columns }: Pick<RowForm, "columns">): string =>
  Object.entries(columns)
    .map(([name, needed]) => (needed === "needed" ? name : `[${name}]`))
    .join(", ");

function recordsOf(text: string, file: string): Record_[] {
  const [first = ""] = text.split("\n", 1);
  const delimiter = first.split(";").length > first.split(",").length ? ";" : ",";
  try {
    const options = {
      bom: true,
      delimiter,
      info: true,
      relax_column_count: true,
      skip_empty_lines: true,
      trim: true,
    } as const;
    return parse(text, options) as unknown as Record_[];
  } catch (error) {
    if (error instanceof CsvError) throw new UsageError(`${file} is no CSV: ${error.message}`);
    throw error;
  }
}

function faultsOfHead(names: readonly string[], form: Pick<RowForm, "columns">): Omit<Fault, "line">[] {
  const unknown = names.filter((name) => !Object.hasOwn(form.columns, name));
  const twice = names.filter((name, index) => names.indexOf(name) !== index);
  const missing = Object.entries(form.columns).flatMap(([name, needed]) =>
    needed === "needed" && !names.includes(name) ? [name] : [],
  );
  return [
    ...unknown.map((column) => ({ column, message: `is no column of this file. The columns are ${columnText(form)}` })),
    ...twice.map((column) => ({ column, message: "is there twice" })),
    ...missing.map((column) => ({ column, message: "is missing" })),
  ];
}

function lineOf({ record, info }: Record_, names: readonly string[]): Line | Fault {
  if (record.length > names.length && record.slice(names.length).some((value) => value !== ""))
    return { line: info.lines, column: null, message: `has ${record.length} values for ${names.length} columns` };
  const entries = names.flatMap((name, index) => {
    const value = record[index] ?? "";
    return value === "" ? [] : [[name, value] as const];
  });
  return { line: info.lines, values: Object.fromEntries(entries) };
}
