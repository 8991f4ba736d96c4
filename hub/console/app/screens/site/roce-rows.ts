import type { Answer, Body } from "../../api/schema.ts";
import { cidr, hostname, interfaceName } from "../../forms/checks.ts";
import { type CsvColumn, type CsvTable, readCsv } from "../../forms/csv.ts";

const ROCE_COLUMNS: readonly CsvColumn[] = [
  { name: "hostname", check: hostname, required: true },
  { name: "interface", check: interfaceName, required: true },
  { name: "ipv4_cidr", check: cidr, required: true },
];

/** Reads RoCE rows, of which each host has one for each interface. */
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

/** Returns the rows that the hub has not written, by their line in the text. The hub names a row by its index in the request. */
export const refusedRows = ({ rows }: CsvTable, { items }: Answer<"upsertRoceAssignments">): RefusedRow[] =>
  items.flatMap((item) =>
    item.outcome === "failed" ? [{ line: rows[item.index]?.line ?? 0, message: item.message }] : [],
  );
