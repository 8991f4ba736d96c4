import { existsSync, readFileSync } from "node:fs";
import { execa } from "execa";
import { collectDefaultMetrics, Registry } from "prom-client";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import type { Family } from "../hub/metrics/counted/family.ts";
import { FAMILIES } from "../hub/metrics/families.ts";
import { groupedLabelsOf, type Selector, selectorsOf } from "./support/promql.ts";
import { hasPromtool, WITHOUT_PROMTOOL } from "./support/promtool.ts";

const root = new URL("..", import.meta.url).pathname;
const RULES = `${root}packaging/hub/muster-alerts.yaml`;
const DASHBOARD = `${root}packaging/hub/muster-dashboard.json`;

const Alert = z.strictObject({
  alert: z.string().regex(/^Muster[A-Za-z]+$/),
  expr: z.string(),
  for: z.string().regex(/^\d+[smh]$/),
  labels: z.strictObject({ severity: z.enum(["critical", "warning", "info"]) }),
  annotations: z.strictObject({ summary: z.string().min(1), description: z.string().min(1), runbook_url: z.string() }),
});
const Rules = z.strictObject({
  groups: z.tuple([z.strictObject({ name: z.literal("muster"), rules: z.array(Alert).min(1) })]),
});
const alerts = Rules.parse(parse(readFileSync(RULES, "utf8"))).groups[0].rules;

const Panel = z.looseObject({
  id: z.int(),
  type: z.string(),
  title: z.string().min(1),
  datasource: z.object({ uid: z.string().regex(/^\$\{datasource\}$/) }).optional(),
  targets: z.array(z.looseObject({ expr: z.string() })).optional(),
});
const Dashboard = z.looseObject({
  uid: z.string(),
  schemaVersion: z.int(),
  templating: z.object({ list: z.array(z.looseObject({ name: z.string(), type: z.string() })) }),
  panels: z.array(Panel).min(1),
});
const dashboard = Dashboard.parse(JSON.parse(readFileSync(DASHBOARD, "utf8")));
const queries = dashboard.panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }) => [title, expr] as const),
);

const FROM_PROMETHEUS = new Set(["up"]);
const TARGET_LABELS = ["job", "instance", "le"];
const ofProcess = (() => {
  const register = new Registry();
  collectDefaultMetrics({ register });
  return new Set(register.getMetricsAsArray().map(({ name }) => name));
})();

/** A histogram has only names with a suffix, and no other metric has one. */
const familyOf = (name: string): Family | undefined =>
  FAMILIES.find((family) =>
    family.kind === "histogram"
      ? ["_bucket", "_sum", "_count"].some((end) => name === `${family.name}${end}`)
      : name === family.name,
  );

function faultsOf({ name, matchers }: Selector): string[] {
  if (FROM_PROMETHEUS.has(name) || ofProcess.has(name)) return [];
  const family = familyOf(name);
  if (family === undefined) return [`${name} is no metric of the hub`];
  return matchers.flatMap(({ label, operator, value }) => {
    if (TARGET_LABELS.includes(label)) return [];
    const values = family.labels[label];
    if (values === undefined) return [`${name} has no label ${label}`];
    if ("most" in values || !/^!?=$/.test(operator)) return [];
    return values.includes(value) ? [] : [`${name} has no ${label} ${value}`];
  });
}

function groupFaults(expression: string): string[] {
  const known = new Set([
    ...TARGET_LABELS,
    ...selectorsOf(expression).flatMap(({ name }) => Object.keys(familyOf(name)?.labels ?? {})),
  ]);
  return groupedLabelsOf(expression).filter((label) => !known.has(label));
}

describe("the parser of PromQL names", () => {
  it.each([
    ['sum by (site) (rate(muster_x_total{a="b",c!~"d|e"}[5m] offset 1h)) / 3 > bool 0', ["muster_x_total"]],
    ['absent(up{job="muster"} == 1) or vector(0)', ["up"]],
    ["a and on (site) group_left (x) b unless c", ["a", "b", "c"]],
  ])("finds the metrics of %s", (expression, names) => {
    expect(selectorsOf(expression).map(({ name }) => name)).toEqual(names);
  });

  it("finds a wrong name, a wrong label, a wrong value and a wrong group", () => {
    const faults = (expression: string) => [...selectorsOf(expression).flatMap(faultsOf), ...groupFaults(expression)];
    expect(faults("muster_nods")).toEqual(["muster_nods is no metric of the hub"]);
    expect(faults("muster_workflow_stage_seconds")).toHaveLength(1);
    expect(faults('muster_nodes{state="active"}')).toEqual(["muster_nodes has no label state"]);
    expect(faults('muster_nodes{status="actve"}')).toEqual(["muster_nodes has no status actve"]);
    expect(faults("sum by (host) (muster_nodes)")).toEqual(["host"]);
  });
});

describe("the alert rules of the hub's package", () => {
  it.each(alerts.map((alert) => [alert.alert, alert] as const))("%s names only metrics of the hub", (_, { expr }) => {
    expect(selectorsOf(expr)).not.toEqual([]);
    expect([...selectorsOf(expr).flatMap(faultsOf), ...groupFaults(expr)]).toEqual([]);
  });

  it.each(alerts.map((alert) => [alert.alert, alert] as const))("%s has a runbook", (name, { labels, annotations }) => {
    const [file = "", anchor = ""] = annotations.runbook_url.split("#");
    expect(existsSync(`${root}${file}`)).toBe(true);
    const page = readFileSync(`${root}${file}`, "utf8");
    const headings = [...page.matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
      heading.toLowerCase().replaceAll(" ", "-"),
    );
    expect(headings).toContain(anchor);
    expect(page).toContain(`### ${name}\n\nSeverity ${labels.severity}.`);
  });

  it("describe no alert that does not exist", () => {
    const page = readFileSync(`${root}docs/metrics.md`, "utf8");
    const described = [...page.matchAll(/^### (Muster\w+)$/gm)].map(([, name]) => name);
    expect(described).toEqual(alerts.map(({ alert }) => alert));
  });
});

describe("the dashboard of the hub's package", () => {
  it.each(queries)("%s: %s names only metrics of the hub", (_, expression) => {
    expect(selectorsOf(expression)).not.toEqual([]);
    expect([...selectorsOf(expression).flatMap(faultsOf), ...groupFaults(expression)]).toEqual([]);
  });

  it("has panels with numbers of their own, and asks for its data source", () => {
    const ids = dashboard.panels.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    expect(dashboard).not.toHaveProperty("id");
    expect(dashboard.templating.list.map(({ name, type }) => [name, type])).toContainEqual([
      "datasource",
      "datasource",
    ]);
  });

  it("shows every metric of the hub", () => {
    const shown = new Set(queries.flatMap(([, expr]) => selectorsOf(expr).map(({ name }) => familyOf(name)?.name)));
    expect(FAMILIES.map(({ name }) => name).filter((name) => !shown.has(name))).toEqual([]);
  });
});

describe.skipIf(!hasPromtool)(`promtool (${WITHOUT_PROMTOOL})`, () => {
  it("accepts the rules", async () => {
    expect(await execa("promtool", ["check", "rules", RULES], { reject: false })).toMatchObject({ exitCode: 0 });
  });

  it("finds that each rule fires when it must and not before", async () => {
    const tests = `${root}test/alerts/muster-alerts.test.yaml`;
    const named = new Set([...readFileSync(tests, "utf8").matchAll(/alertname="(\w+)"/g)].map(([, name]) => name));
    expect(alerts.map(({ alert }) => alert).filter((name) => !named.has(name))).toEqual([]);
    const run = await execa("promtool", ["test", "rules", tests], { reject: false, all: true });
    expect(run.exitCode, run.all).toBe(0);
  });
});
