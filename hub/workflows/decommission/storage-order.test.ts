import { describe, expect, it } from "vitest";
import { TASKS } from "../../../shared/tasks/index.ts";
import { storageOrder, storageSeconds } from "./storage-order.ts";

const SEED = "0f".repeat(32);
const policy = (more: Partial<NonNullable<Parameters<typeof storageOrder>[1]>> = {}) => ({
  scratchFolders: ["/scratch"],
  dataShares: ["/share1"],
  wekaPrefixes: ["/mnt/weka"],
  clearFreeSpace: false,
  purgeDisks: [],
  ...more,
});
const HOUR = 3_600;

describe("the order of a storage cleanup", () => {
  it("has the folders of the profile, and names no disk unless the profile lists disks", () => {
    const order = storageOrder({ storage_cleanup: "all" }, policy(), SEED);
    expect(order).toEqual({
      scope: "all",
      temporary: true,
      scratch: ["/scratch"],
      shares: ["/share1"],
      free_space: false,
      weka_prefixes: ["/mnt/weka"],
      disks: [],
      plan: false,
    });
    expect(storageOrder({ storage_cleanup: "none" }, null, SEED)).toEqual({
      ...order,
      scratch: [],
      shares: [],
      weka_prefixes: [],
    });
  });

  it.each(["none", "local", "weka", "all"] as const)(
    "%s: lists the profile's disks if local storage is cleaned",
    (scope) => {
      const order = storageOrder({ storage_cleanup: scope }, policy({ purgeDisks: ["S-1", "S-2"] }), SEED);
      expect(TASKS["node.storage_cleanup"].input.parse(order)).toEqual(order);
      expect([order.disk_pool, order.sample_seed]).toEqual(
        scope === "weka" ? [undefined, undefined] : [["S-1", "S-2"], SEED],
      );
    },
  );

  it("has a deadline for each part of the work", () => {
    const all = { storage_cleanup: "all" } as const;
    expect(storageSeconds(all, null)).toBe(6 * HOUR);
    expect(storageSeconds(all, policy())).toBe(6 * HOUR);
    expect(storageSeconds(all, policy({ clearFreeSpace: true }))).toBe((6 + 4 * 24) * HOUR);
    expect(storageSeconds(all, policy({ purgeDisks: ["S-1", "S-2"] }))).toBe((6 + 50) * HOUR);
    const many = Array.from({ length: 512 }, (_, index) => `S-${index}`);
    expect(storageSeconds(all, policy({ purgeDisks: many }))).toBe((6 + 400) * HOUR);
    expect(storageSeconds({ storage_cleanup: "weka" }, policy({ purgeDisks: many }))).toBe(6 * HOUR);
  });
});
