import type { CsvRead } from "./read-csv.ts";
import type { Fault, GoodRow, Line, RowForm } from "./row-form.ts";

export interface Checked {
  readonly rows: readonly GoodRow[];
  readonly faults: readonly Fault[];
}

/** Checks all rows of a file before anything is sent. A row with a fault does not appear in the returned `rows`; its faults appear in `faults`. */
export function checkRows({ lines, faults: ofFile }: CsvRead, form: RowForm): Checked {
  const repeated = repeatedValues(lines, form);
  const checked = lines.map((line) => {
    const item = form.itemOf(line.values);
    const faults: Fault[] = [
      ...missingOf(line, form),
      ...form.faultsOf(item).map(({ path, message }) => ({ line: line.line, column: columnOf(path, form), message })),
      ...repeated.filter((fault) => fault.line === line.line),
    ];
    return { line: line.line, item, faults: oneForEachColumn(faults) };
  });
  return {
    rows: checked.filter(({ faults }) => faults.length === 0).map(({ line, item }) => ({ line, item })),
    faults: [...ofFile, ...checked.flatMap(({ faults }) => faults)].toSorted((a, b) => a.line - b.line),
  };
}

const missingOf = ({ line, values }: Line, { columns }: RowForm): Fault[] =>
  Object.entries(columns).flatMap(([column, needed]) =>
    needed === "needed" && values[column] === undefined ? [{ line, column, message: "is empty" }] : [],
  );

/** A missing value is also a fault by the schema, so only the first fault of each column of a row is kept. */
const oneForEachColumn = (faults: readonly Fault[]): Fault[] =>
  faults.filter((fault, index) => faults.findIndex(({ column }) => column === fault.column) === index);

/** The column in which a fault of an item lies, for example `unit` for the path `location.unit`. */
const columnOf = (path: readonly PropertyKey[], { columns }: RowForm): string | null =>
  path.map(String).findLast((part) => Object.hasOwn(columns, part)) ?? null;

function repeatedValues(lines: readonly Line[], { unique }: RowForm): Fault[] {
  return unique.flatMap((columns) => {
    const seen = new Map<string, number>();
    return lines.flatMap(({ line, values }) => {
      const parts = columns.map((column) => values[column]?.toLowerCase());
      if (parts.includes(undefined)) return [];
      const key = parts.join("\n");
      const first = seen.get(key);
      if (first === undefined) seen.set(key, line);
      const column = columns[0] ?? "";
      return first === undefined ? [] : [{ line, column, message: `is the same as in line ${first}` }];
    });
  });
}
