import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { STORAGE_LIMITS, storageCleanupSeconds, storageWorks } from "./storage-works.ts";

const folders = (prefix: string) => fc.integer({ min: 0, max: 16 }).map((count) => names(prefix, count));
const names = (prefix: string, count: number) => Array.from({ length: count }, (_, index) => `${prefix}${index}`);
const INPUT = fc.record({
  scope: fc.constantFrom("local" as const, "weka" as const, "all" as const),
  temporary: fc.boolean(),
  scratch: folders("/scratch"),
  shares: folders("/share"),
  free_space: fc.boolean(),
  disks: fc.integer({ min: 0, max: 64 }).map((count) => names("S-", count).map((serial) => ({ serial, wwn: null }))),
  disk_pool: fc.integer({ min: 0, max: 512 }).map((count) => names("P-", count)),
  plan: fc.constant(false),
});

describe("the time of a storage cleanup", () => {
  it("is longer than all worker processes together, in each round", () => {
    fc.assert(
      fc.property(INPUT, (input) => {
        const { disk, file_system } = STORAGE_LIMITS;
        const works = storageWorks(input).reduce((sum, { step }) => sum + STORAGE_LIMITS[step].seconds, 0);
        const disks = input.scope === "weka" ? 0 : input.disks.length;
        const least = works + disks * (disk.rounds * disk.seconds + file_system.seconds);
        expect(storageCleanupSeconds(input)).toBeGreaterThan(least);
      }),
    );
  });

  it("does not fall short for a listed disk that the host turns out to have", () => {
    fc.assert(
      fc.property(INPUT, ({ disk_pool: pool, ...all }) => {
        const input = { ...all, disks: [] };
        const own = pool.slice(0, 16).map((serial) => ({ serial, wwn: null }));
        const replaced = storageCleanupSeconds({ ...input, disks: own });
        expect(storageCleanupSeconds({ ...input, disk_pool: pool })).toBe(replaced);
      }),
    );
  });
});
