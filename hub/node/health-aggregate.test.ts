import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { HealthOverrideSet } from "../../shared/api/health-overrides.ts";
import {
  CLASSIFICATIONS,
  type Classification,
  HEALTH_TEMPLATE_NAMES,
  HEALTH_TEMPLATES,
  type HealthAlert,
  isOwnOverride,
} from "../../shared/health-report.ts";
import { aggregateAlerts, type OverrideFacts, overridesInForce, overridesThat } from "./health-aggregate.ts";

const alert = (given: Partial<HealthAlert> = {}): HealthAlert => ({
  id: "Maintenance",
  target: null,
  message: "a fan is loud",
  tenant_message: null,
  classifications: ["PreventAllocations"],
  ...given,
});
const override = (source: string, given: Partial<OverrideFacts> = {}): OverrideFacts => ({
  source,
  mode: "merge",
  reason: `reason of ${source}`,
  since: new Date(1_000),
  alerts: [alert()],
  ...given,
});
const healthy = override("mark-healthy", { mode: "replace", alerts: [] });
const sourcesOf = (overrides: readonly OverrideFacts[]) => overrides.map(({ source }) => source);

describe("the health overrides that count", () => {
  it("are all without a replacement; with one, it alone and Muster's own", () => {
    const [degraded, erase, restore] = [override("degraded"), override("disk-erase"), override("restore")];
    expect(sourcesOf(overridesInForce([degraded, erase]))).toEqual(["degraded", "disk-erase"]);
    expect(sourcesOf(overridesInForce([degraded, healthy, erase, restore]))).toEqual([
      "mark-healthy",
      "disk-erase",
      "restore",
    ]);
    expect(overridesInForce([])).toEqual([]);
  });

  it("keep tenants off if one of their alerts says so, and an override of Muster's own always does", () => {
    const silent = override("validation", { alerts: [alert({ classifications: ["SuppressExternalAlerting"] })] });
    const own = override("disk-erase", { alerts: null });
    const guard = override("x", {
      alerts: [alert({ id: "a", classifications: [] }), alert({ classifications: ["PreventInstanceDeletion"] })],
    });
    const that = (classification: Classification, ...overrides: OverrideFacts[]) =>
      sourcesOf(overridesThat(classification, overrides));
    expect(that("PreventAllocations", silent, guard)).toEqual([]);
    expect(that("PreventAllocations", silent, override("degraded"), own)).toEqual(["degraded", "disk-erase"]);
    expect(that("PreventAllocations", healthy, override("degraded"))).toEqual([]);
    expect(that("PreventAllocations", healthy, override("degraded"), own)).toEqual(["disk-erase"]);
    expect(that("PreventInstanceDeletion", silent, guard, own)).toEqual(["x"]);
  });

  it("are, beside a replacement, also those that keep the tenant's allocation, which prevent nothing else then", () => {
    const online = override("request-online-repair", {
      alerts: [
        alert({ classifications: ["PreventAllocations", "PreventInstanceDeletion"] }),
        alert({ target: "fan-2" }),
      ],
    });
    expect(sourcesOf(overridesInForce([online, override("degraded"), healthy]))).toEqual([
      "request-online-repair",
      "mark-healthy",
    ]);
    expect(overridesThat("PreventAllocations", [online, healthy])).toEqual([]);
    expect(sourcesOf(overridesThat("PreventInstanceDeletion", [healthy, online]))).toEqual(["request-online-repair"]);
    expect(aggregateAlerts([online, healthy])).toMatchObject([
      { target: null, classifications: ["PreventInstanceDeletion"], sources: ["request-online-repair"] },
    ]);
    expect(aggregateAlerts([online])).toHaveLength(2);
  });
});

describe("the alerts of a node", () => {
  it("join the alerts of one id and target: all classifications, all messages, the earliest time", () => {
    const first = override("a", { alerts: [alert({ tenant_message: "in repair" })], since: new Date(9_000) });
    const second = override("b", {
      alerts: [alert({ message: "no fan at all", classifications: ["Hardware", "PreventAllocations"] })],
      since: new Date(5_000),
    });
    const other = override("c", { alerts: [alert({ target: "fan-2" })] });
    expect(aggregateAlerts([first, second, other])).toEqual([
      {
        ...alert({ message: "a fan is loud\nno fan at all", tenant_message: "in repair" }),
        ...{ classifications: ["PreventAllocations", "Hardware"], since: new Date(5_000), sources: ["a", "b"] },
      },
      { ...alert({ target: "fan-2" }), since: new Date(1_000), sources: ["c"] },
    ]);
    expect(aggregateAlerts([first, first])[0]).toMatchObject({ message: "a fan is loud", sources: ["a"] });
    expect(aggregateAlerts([override("disk-erase", { alerts: null })])).toEqual([
      {
        ...alert({ id: "disk-erase", message: "reason of disk-erase" }),
        ...{ since: new Date(1_000), sources: ["disk-erase"] },
      },
    ]);
  });

  it("are the same for every order of the overrides, and agree with what the overrides prevent", () => {
    const anAlert = fc.record({
      id: fc.constantFrom("A", "B"),
      target: fc.constantFrom(null, "t"),
      message: fc.constantFrom("one", "two"),
      tenant_message: fc.constantFrom(null, "yours"),
      classifications: fc.uniqueArray(fc.constantFrom("PreventAllocations", "PreventInstanceDeletion", "Hardware")),
    });
    const some = fc.uniqueArray(
      fc.record({
        source: fc.constantFrom("disk-erase", "restore", "a", "b", "c"),
        mode: fc.constantFrom("merge" as const, "replace" as const),
        reason: fc.constant("r"),
        since: fc.integer({ min: 1, max: 9 }).map((second) => new Date(second * 1_000)),
        alerts: fc.option(fc.array(anAlert, { maxLength: 3 })),
      }),
      { selector: ({ source }) => source },
    );
    const comparable = (overrides: readonly OverrideFacts[]) =>
      aggregateAlerts(overrides)
        .map(({ message: _inAnyOrder, tenant_message: _likewise, ...one }) => ({
          ...one,
          classifications: one.classifications.toSorted(),
          sources: one.sources.toSorted(),
        }))
        .toSorted((a, b) => JSON.stringify([a.id, a.target]).localeCompare(JSON.stringify([b.id, b.target])));
    fc.assert(
      fc.property(
        some.chain((all) => fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length }))),
        ([all, shuffled]) => {
          const alerts = aggregateAlerts(all);
          expect(comparable(shuffled)).toEqual(comparable(all));
          expect(new Set(alerts.map(({ id, target }) => JSON.stringify([id, target]))).size).toBe(alerts.length);
          for (const classification of Object.keys(CLASSIFICATIONS) as Classification[])
            expect(alerts.some(({ classifications }) => classifications.includes(classification))).toBe(
              overridesThat(classification, all).length > 0,
            );
        },
      ),
    );
  });
});

describe("a request for a health override", () => {
  const problems = (given: object): string[] => {
    const parsed = HealthOverrideSet.safeParse({ reason: "a test", ...given });
    return parsed.success ? [] : parsed.error.issues.map(({ path }) => path.join("."));
  };

  it("needs what its template needs: eleven templates, each with a source of its own", () => {
    expect(HEALTH_TEMPLATE_NAMES).toHaveLength(11);
    const sources = Object.values(HEALTH_TEMPLATES).map(({ source }) => source);
    expect(new Set(sources).size).toBe(11);
    expect(sources.some(isOwnOverride)).toBe(false);
    for (const template of HEALTH_TEMPLATE_NAMES) {
      const isHealthy = template === "MarkHealthy";
      expect(problems({ template, message: "a fan" }), template).toEqual(isHealthy ? ["message"] : []);
      expect(problems({ template }), template).toEqual(isHealthy ? [] : ["message"]);
    }
    expect(problems({ template: "Degraded", message: "x", alerts: [alert()] })).toEqual(["alerts"]);
    expect(problems({ template: "Degraded", message: "x", mode: "replace" })).toEqual(["mode"]);
  });

  it("or names a source and its alerts, and no source of Muster's own", () => {
    expect(problems({ source: "site-fans", alerts: [alert()] })).toEqual([]);
    expect(problems({ source: "site-fans", mode: "replace", alerts: [] })).toEqual([]);
    expect(problems({})).toEqual(["template"]);
    expect(problems({ template: "Degraded", message: "x", source: "site-fans", alerts: [alert()] })).toEqual([
      "template",
    ]);
    expect(problems({ source: "site-fans" })).toEqual(["alerts"]);
    expect(problems({ source: "site-fans", alerts: [] })).toEqual(["alerts"]);
    expect(problems({ source: "site-fans", alerts: [alert()], message: "x" })).toEqual(["message"]);
    for (const source of ["disk-erase", "restore"]) expect(problems({ source, alerts: [alert()] })).toEqual(["source"]);
  });
});
