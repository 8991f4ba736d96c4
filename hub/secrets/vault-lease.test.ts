import { describe, expect, it } from "vitest";
import { nextStep, retryMs } from "./vault-lease.ts";

describe("nextStep", () => {
  const lease = (seconds: number, renewable: boolean) => ({ seconds, renewable });
  it("comes between two and three fifths of the lease, and never at once", () => {
    for (const random of [0, 0.5, 0.999]) {
      const step = nextStep(lease(100, true), lease(100, true), true, random);
      expect(step?.how).toBe("renew");
      expect(step?.afterMs).toBeGreaterThanOrEqual(40_000);
      expect(step?.afterMs).toBeLessThan(60_000);
      expect(nextStep(lease(1, true), lease(1, true), false, random)?.afterMs).toBe(1_000);
    }
  });
  it.each([
    ["has a second left at most, by token", lease(0, true), false, undefined],
    ["has a second left at most, by AppRole", lease(0, true), true, "log_in"],
    ["can be renewed", lease(100, true), false, "renew"],
    ["has met its longest life, by token", lease(40, true), false, "renew"],
    ["has met its longest life, by AppRole", lease(40, true), true, "log_in"],
    ["cannot be renewed, by token", lease(100, false), false, undefined],
    ["cannot be renewed, by AppRole", lease(100, false), true, "log_in"],
  ])("of a token that %s", (_name, now, canLogIn, how) => {
    expect(nextStep(now, lease(100, true), canLogIn, 0.5)?.how).toBe(how);
  });
});

describe("a step that failed", () => {
  it("is repeated at most twenty times in a lease, and never at once", () => {
    for (const seconds of [0, 1, 20, 60, 3600, 32 * 86_400])
      expect(retryMs({ seconds, renewable: true })).toBe(Math.max(1_000, seconds * 50));
  });
});
