import { describe, expect, it } from "vitest";
import { EVENT_LOCK_SPACE, LOCK_CLASSES, MIGRATION_LOCK } from "./advisory-locks.ts";

describe("the advisory locks", () => {
  it("have one number each, which fits into a pair's key", () => {
    const numbers: number[] = Object.values(LOCK_CLASSES);
    expect(new Set(numbers).size).toBe(numbers.length);
    for (const number of numbers) expect(number).toBeLessThan(2 ** 31);
  });

  it("keep the numbers that other versions of the hub use", () => {
    expect(LOCK_CLASSES).toMatchObject({ manual_node_name: 74_103, deploy_slots: 74_104 });
    expect(MIGRATION_LOCK).toBe(120351215609202n);
  });

  it("of migrations and of event writers never collide", () => {
    expect(MIGRATION_LOCK >> 48n).not.toBe(BigInt(EVENT_LOCK_SPACE));
  });
});
