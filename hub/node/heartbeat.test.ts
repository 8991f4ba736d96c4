import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { heartbeatTtlMs } from "./heartbeat.ts";

describe("the heartbeat interval", () => {
  it.each([
    [1, 10_000, 0, 10_000],
    [500, 10_000, 0, 10_000],
    [501, 10_000, 0, 10_020],
    [5_000, 10_000, 0, 100_000],
    [5_000, 10_000, 0.5, 150_000],
  ])("of %i agents with a minimum of %i ms and a draw of %f is %i ms", (agents, minimum, random, expected) => {
    expect(heartbeatTtlMs(agents, minimum, random)).toBe(expected);
  });

  it("lies in [interval, 2 x interval) and keeps the fleet at 50 beats a second or fewer", () => {
    const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 100_000 }), fc.integer({ min: 500, max: 60_000 }), random, (n, min, r) => {
        const interval = Math.max(min, n * 20);
        const ttl = heartbeatTtlMs(n, min, r);
        expect(ttl).toBeGreaterThanOrEqual(Math.floor(interval));
        expect(ttl).toBeLessThanOrEqual(2 * interval);
        expect((n / ttl) * 1_000).toBeLessThanOrEqual(50.001);
      }),
    );
  });
});
