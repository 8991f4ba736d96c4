import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { withMetricsTable } from "./support/metrics-table.ts";

describe("docs/metrics.md", () => {
  it("lists each metric of the hub with its labels and its meaning", () => {
    const page = readFileSync(new URL("../docs/metrics.md", import.meta.url), "utf8");
    expect(page).toBe(withMetricsTable(page));
  });
});
