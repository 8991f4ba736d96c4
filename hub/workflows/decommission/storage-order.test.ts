import { describe, expect, it } from "vitest";
import { TASKS } from "../../../shared/tasks/index.ts";
import { expectedDisks, storageOrder, storageSeconds } from "./storage-order.ts";

const NONE: ReadonlySet<string> = new Set();
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
    const order = storageOrder({ storage_cleanup: "all", purge_disks: [] }, policy(), SEED, NONE);
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
    expect(storageOrder({ storage_cleanup: "none", purge_disks: [] }, null, SEED, NONE)).toEqual({
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
        NONE,
      );
      expect(TASKS["node.storage_cleanup"].input.parse(order)).toEqual(order);
      expect(order.disks).toEqual(scope === "weka" ? [] : [{ serial: "S-9", wwn: null }]);
      expect([order.disk_pool, order.sample_seed]).toEqual(
        scope === "weka" ? [undefined, undefined] : [["S-1", "S-2"], SEED],
      );
    },
  );

  it("needs no profile for the disks that the request names", () => {
    const order = storageOrder({ storage_cleanup: "local", purge_disks: ["S-9"] }, null, SEED, NONE);
    expect(TASKS["node.storage_cleanup"].input.parse(order)).toEqual(order);
    expect(order).toMatchObject({ disks: [{ serial: "S-9", wwn: null }], sample_seed: SEED });
    expect(order).not.toHaveProperty("disk_pool");
  });

  it("names each listed disk that the hub knows as a disk of the host, so that a hidden disk is missed", () => {
    const listed = policy({ purgeDisks: ["S-1", "S-2", "S-3"] });
    const order = storageOrder({ storage_cleanup: "all", purge_disks: ["S-2"] }, listed, SEED, new Set(["S-1", "S-2"]));
    expect(TASKS["node.storage_cleanup"].input.parse(order)).toEqual(order);
    expect(order.disks.map(({ serial }) => serial)).toEqual(["S-2", "S-1"]);
    expect(order.disk_pool).toEqual(["S-3"]);
    const all = storageOrder({ storage_cleanup: "all", purge_disks: [] }, listed, SEED, new Set(listed.purgeDisks));
    expect([all.disks.length, all.disk_pool, all.sample_seed]).toEqual([3, undefined, SEED]);
    const weka = storageOrder({ storage_cleanup: "weka", purge_disks: [] }, listed, SEED, new Set(["S-1"]));
    expect([weka.disks, weka.disk_pool]).toEqual([[], undefined]);
  });

  it("names at most as many disks as the agent purges, and the other known disks stay expected", () => {
    const many = Array.from({ length: 70 }, (_, index) => `S-${index}`);
    const asked = { storage_cleanup: "all" as const, purge_disks: [] };
    const order = storageOrder(asked, policy({ purgeDisks: many }), SEED, new Set(many));
    expect(TASKS["node.storage_cleanup"].input.parse(order)).toEqual(order);
    expect([order.disks.length, order.disk_pool?.length]).toEqual([64, 6]);
    expect(expectedDisks(asked, policy({ purgeDisks: many }), new Set(many))).toEqual(many);
  });

  it("gives the agent the time of each worker process that it may start", () => {
    const all = { storage_cleanup: "all" as const, purge_disks: [] };
    const ofOrder = (purgeDisks: string[]) => storageSeconds(all, policy({ purgeDisks })) / HOUR;
    expect(storageSeconds(all, null) / HOUR).toBeGreaterThan(2 * 4);
    const oneDisk = ofOrder(["S-1"]) - ofOrder([]);
    // The purge of one disk may need three worker processes of 96 hours each, and a fourth worker process for the disk's new file systems.
    expect(oneDisk).toBeGreaterThan(3 * 96 + 8);
    expect(ofOrder(["S-1", "S-2"]) - ofOrder([])).toBeCloseTo(2 * oneDisk);
    const many = Array.from({ length: 512 }, (_, index) => `S-${index}`);
    expect(ofOrder(many) - ofOrder([])).toBeCloseTo(16 * oneDisk);
    const weka = storageSeconds({ storage_cleanup: "weka", purge_disks: ["S-1"] }, policy({ purgeDisks: many }));
    expect(weka).toBeLessThanOrEqual(HOUR);
  });
});
