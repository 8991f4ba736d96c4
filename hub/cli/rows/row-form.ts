/** One fault of a file of rows, with the line and column at which a person finds it. */
export interface Fault {
  readonly line: number;
  /** The column with the fault, or null if the whole line is at fault. */
  readonly column: string | null;
  readonly message: string;
}

/** A line of a CSV file with the values of its columns; an empty value is left out. */
export interface Line {
  readonly line: number;
  readonly values: Readonly<Record<string, string>>;
}

/** Describes the rows that one kind of CSV file must have: their columns, checks and unique values. */
export interface RowForm {
  /** The columns by their names; a row must have a value in each column that is `needed`. */
  readonly columns: Readonly<Record<string, "needed" | "optional">>;
  /** Makes the item of an API request from the values of a row. */
  readonly itemOf: (values: Line["values"]) => unknown;
  /** Checks an item of the API request as the hub does, and returns the path and message of each fault. */
  readonly faultsOf: (item: unknown) => readonly { readonly path: readonly PropertyKey[]; readonly message: string }[];
  /** The groups of columns of which each value, or each combination of values, may occur in one row only. */
  readonly unique: readonly (readonly string[])[];
}

/** A row of a file that passed all checks, with its line number in the file. */
export interface GoodRow {
  readonly line: number;
  readonly item: unknown;
}

export const faultText = (file: string, { line, column, message }: Fault): string =>
  `${file}:${line}: ${column === null ? "" : `${column}: `}${message}`;
