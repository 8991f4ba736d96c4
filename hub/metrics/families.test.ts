import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { counter, gauge, OTHER, upTo } from "./counted/family.ts";
import { COUNTED, FAMILIES } from "./families.ts";
import { siteNames, slugOf } from "./gauges/site-names.ts";

const root = new URL("../..", import.meta.url).pathname;

function sourcesBelow(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"))
    .map((file) => join(root, folder, file));
}

/** The names under which the files of `hub/metrics/counted` export what the hub counts, with each metric's name. */
const EXPORTED = sourcesBelow("hub/metrics/counted").flatMap((file) =>
  [...readFileSync(file, "utf8").matchAll(/export const (\w+) = (?:counter|histogram)\(\{\s*name: "(\w+)"/g)].map(
    ([, variable = "", name = ""]) => ({ variable, name }),
  ),
);

describe("the list of metrics", () => {
  it("names each metric once, by the rules of Prometheus", () => {
    const names = FAMILIES.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    for (const { name, kind } of FAMILIES) {
      expect(name).toMatch(/^muster_[a-z_]+$/);
      expect(name.endsWith("_total"), name).toBe(kind === "counter");
      if (kind === "histogram") expect(name).toMatch(/_seconds$/);
      expect(name, "a suffix of prom-client's own").not.toMatch(/_(bucket|sum|count|created)$/);
    }
  });

  it("contains every metric that a file of hub/metrics/counted exports", () => {
    expect(EXPORTED.map(({ name }) => name).sort()).toEqual(COUNTED.map(({ name }) => name).sort());
  });

  it.each(EXPORTED)("$name is counted somewhere in the hub", ({ variable }) => {
    const counted = new RegExp(`\\b${variable}\\.(add|observe)\\(`);
    const places = sourcesBelow("hub").filter((file) => counted.test(readFileSync(file, "utf8")));
    expect(places).not.toEqual([]);
  });

  it("has no label that grows with the fleet", () => {
    for (const { name, labels } of FAMILIES)
      for (const [label, values] of Object.entries(labels)) {
        expect(
          ["host", "hostname", "node", "node_id", "address", "system_id"].filter(
            (one) => one === label && name !== "muster_build_info",
          ),
        ).toEqual([]);
        if ("most" in values) expect(values.most, `${name} ${label}`).toBeLessThanOrEqual(80);
        else expect(values.length, `${name} ${label}`).toBeLessThanOrEqual(16);
      }
  });
});

describe("a gauge without labels", () => {
  it("has a value only while it shows one, and never a 0 that nobody has read", async () => {
    const family = gauge({ name: "muster_test_empty", help: "A test.", labels: {}, told: "database" });
    const values = async () => (await family.metric.get()).values.map(({ value }) => value);
    expect(await values()).toEqual([]);
    for (const value of [7, 0]) {
      family.show([{ labels: {}, value }]);
      expect(await values()).toEqual([value]);
    }
    family.show([]);
    expect(await values()).toEqual([]);
  });
});

describe("a label of free text", () => {
  it("counts every text above its limit as other", async () => {
    const family = counter({ name: "muster_test_total", help: "A test.", labels: { of: upTo(2) } });
    for (const owner of ["a", "b", "c", "d", "a"]) family.add({ of: owner });
    const { values } = await family.metric.get();
    expect(values.map(({ labels, value }) => [labels["of"], value])).toEqual([
      ["a", 2],
      ["b", 1],
      [OTHER, 2],
    ]);
  });
});

describe("the label of a site", () => {
  const site = (index: number, name: string) => ({ id: `0000000${index}-0000`.slice(-13), name });

  it.each([
    ["Berlin 1", "berlin-1"],
    ["DC_1 (old)", "dc-1-old"],
    ["日本", "site"],
  ])("%s is %s", (name, slug) => expect(slugOf(name)).toBe(slug));

  it("keeps two sites with one slug apart, and names no site none or other", () => {
    const names = siteNames([site(1, "a b"), site(2, "a-b"), site(3, "Other"), site(4, "none")]);
    const shown = [1, 2, 3, 4].map((index) => names(site(index, "").id));
    expect(new Set(shown).size).toBe(4);
    expect(shown).not.toContain("none");
    expect(shown).not.toContain("other");
    expect(names(null)).toBe("none");
  });

  it("counts the sites above the limit as other", () => {
    const sites = Array.from({ length: 60 }, (_, index) => ({ id: `id-${index}`, name: `site ${index}` }));
    const names = siteNames(sites);
    expect(names("id-49")).toBe("site-49");
    expect(names("id-50")).toBe("other");
  });
});
