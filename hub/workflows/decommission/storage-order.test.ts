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
    const order = storageOrder({ storage_cleanup: "all", purge_disks: [] }, policy(), SEED);
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
    expect(storageOrder({ storage_cleanup: "none", purge_disks: [] }, null, SEED)).toEqual({
      ...order,
      scratch: [],
      shares: [],
      weka_prefixes: [],
    });
  });

  it.each(["none", "local", "weka", "all"] as const)(
    "%s: names the disks of the request and of the profile if local storage is cleaned",
    (scope) => {
      const order = storageOrder(
        { storage_cleanup: scope, purge_disks: ["S-9"] },
        policy({ purgeDisks: ["S-1", "S-2"] }),
        SEED,
      );
      expect(TASKS["node.storage_cleanup"].input.parse(order)).toEqual(order);
      expect(order.disks).toEqual(scope === "weka" ? [] : [{ serial: "S-9", wwn: null }]);
      expect([order.disk_pool, order.sample_seed]).toEqual(
        scope === "weka" ? [undefined, undefined] : [["S-1", "S-2"], SEED],
      );
    },
  );

  it("needs no profile for the disks that the request names", () => {
    const order = storageOrder({ storage_cleanup: "local", purge_disks: ["S-9"] }, null, SEED);
    expect(TASKS["node.storage_cleanup"].input.parse(order)).toEqual(order);
    expect(order).toMatchObject({ disks: [{ serial: "S-9", wwn: null }], sample_seed: SEED });
    expect(order).not.toHaveProperty("disk_pool");
  });

  it("has a deadline for each part of the work", () => {
    const all = { storage_cleanup: "all" as const, purge_disks: [] };
    expect(storageSeconds(all, null)).toBe(6 * HOUR);
    expect(storageSeconds(all, policy())).toBe(6 * HOUR);
    expect(storageSeconds(all, policy({ clearFreeSpace: true }))).toBe((6 + 4 * 24) * HOUR);
    expect(storageSeconds(all, policy({ purgeDisks: ["S-1", "S-2"] }))).toBe((6 + 50) * HOUR);
    expect(storageSeconds({ ...all, purge_disks: ["S-1"] }, null)).toBe((6 + 25) * HOUR);
    const many = Array.from({ length: 512 }, (_, index) => `S-${index}`);
    expect(storageSeconds(all, policy({ purgeDisks: many }))).toBe((6 + 400) * HOUR);
    expect(storageSeconds({ storage_cleanup: "weka", purge_disks: ["S-1"] }, policy({ purgeDisks: many }))).toBe(
      6 * HOUR,
    );
  });
});
