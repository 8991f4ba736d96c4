import type { Family } from "../../hub/metrics/counted/family.ts";
import { FAMILIES } from "../../hub/metrics/families.ts";

const BEGIN = "<!-- metrics: begin -->";
const END = "<!-- metrics: end -->";
const OWN = " Each hub counts its own work: add the hubs up.";
const SHARED = " Every hub reads the same value from the database: take the maximum over the hubs, never the sum.";

const helpOf = (family: Family): string => String(Reflect.get(family.metric, "help"));

function kindOf(family: Family): string {
  if (family.kind !== "gauge") return family.kind;
  return helpOf(family).endsWith(SHARED) ? "gauge, database" : "gauge, process";
}

function rowOf(family: Family): string {
  const help = helpOf(family).replace(OWN, "").replace(SHARED, "");
  const labels = Object.keys(family.labels).map((label) => `\`${label}\``);
  return `| \`${family.name}\` | ${kindOf(family)} | ${labels.join(", ") || "-"} | ${help} |`;
}

/** Returns the page about metrics with the table of all metrics of the code. */
export function withMetricsTable(page: string): string {
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error("the page has no place for the table of metrics");
  const table = ["| metric | kind | labels | meaning |", "| --- | --- | --- | --- |", ...FAMILIES.map(rowOf)];
  return `${page.slice(0, begin + BEGIN.length)}\n\n${table.join("\n")}\n\n${page.slice(end)}`;
}
