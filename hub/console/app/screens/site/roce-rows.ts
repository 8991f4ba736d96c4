import type { Answer, Body } from "../../api/schema.ts";
import { cidr, hostname, interfaceName } from "../../forms/checks.ts";
import { type CsvColumn, type CsvTable, readCsv } from "../../forms/csv.ts";

const ROCE_COLUMNS: readonly CsvColumn[] = [
  { name: "hostname", check: hostname, required: true },
  { name: "interface", check: interfaceName, required: true },
  { name: "ipv4_cidr", check: cidr, required: true },
];

/** Parses a table of RoCE rows; each host has one row per network interface. */
export function readRoce(text: string): CsvTable {
  const table = readCsv(text, ROCE_COLUMNS);
  const seen = new Map<string, number>();
  const twice = table.rows.flatMap(({ line, values }) => {
    const key = `${values["hostname"]} ${values["interface"]}`;
    const before = seen.get(key);
    if (before !== undefined) return [{ line, column: "interface", message: `${key} is in line ${before} already` }];
    seen.set(key, line);
    return [];
  });
  return { rows: table.rows, faults: [...table.faults, ...twice].sort((a, b) => a.line - b.line) };
}

export const roceBody = ({ rows }: CsvTable): Body<"upsertRoceAssignments"> => ({
  items: rows.map(({ values: { hostname: host = "", interface: name = "", ipv4_cidr: address = "" } }) => ({
    hostname: host,
    interface: name,
    ipv4_cidr: address,
  })),
});

export interface RefusedRow {
  readonly line: number;
  readonly message: string;
}

/** The rows that the hub refused when it wrote a table, as a new table text, with the reason for each line. */
export interface Kept {
  readonly text: string;
  readonly refused: readonly RefusedRow[];
}

const HEAD = ROCE_COLUMNS.map(({ name }) => name);

/**
 * Keeps only the rows of the table that the hub refused, so that a person corrects these and sends no written row again. In its answer, the hub
 * identifies each row of the table of RoCE rows by its index.
 */
export function keptRows({ rows }: CsvTable, { items }: Answer<"upsertRoceAssignments">): Kept {
  const failed = items.flatMap((item) => (item.outcome === "failed" ? [item] : []));
  const lines = failed.map(({ index }) => HEAD.map((name) => rows[index]?.values[name] ?? "").join(","));
  return {
    text: [HEAD.join(","), ...lines].join("\n"),
    refused: failed.map(({ message }, n) => ({ line: n + 2, message })),
  };
}
