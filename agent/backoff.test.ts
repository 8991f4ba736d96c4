import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { attemptPlan, heartbeatPauseMs, renewAt, windowMs } from "./backoff.ts";

const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

describe("reconnect arithmetic", () => {
  it("never waits longer than its window after any number of failures", () => {
    fc.assert(
      fc.property(fc.nat(10_000), random, (failures, r) => {
        const { beforeMs, afterMs } = attemptPlan(failures, r);
        expect(beforeMs).toBeGreaterThanOrEqual(0);
        expect(beforeMs + afterMs).toBe(windowMs(failures));
        expect(windowMs(failures)).toBeLessThanOrEqual(60_000);
      }),
    );
  });

  it("grows from one second", () => {
    expect([0, 1, 2, 5, 6, 99].map(windowMs)).toEqual([1_000, 2_000, 4_000, 32_000, 60_000, 60_000]);
  });

  it("waits at most 0.6 of a time to live between two heartbeats", () => {
    fc.assert(
      fc.property(fc.integer({ min: 100, max: 1_000_000 }), random, (ttl, r) => {
        expect(heartbeatPauseMs(ttl, r)).toBeLessThanOrEqual(0.6 * ttl + 1);
      }),
    );
  });

  it("renews near half the certificate's life", () => {
    const start = new Date(0);
    const end = new Date(24 * 3_600_000);
    expect(renewAt(start, end, 0).getTime()).toBe(0.45 * end.getTime());
    expect(renewAt(start, end, 0.999).getTime()).toBeLessThan(0.55 * end.getTime());
  });
});
