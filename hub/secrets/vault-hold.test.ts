import { describe, expect, it } from "vitest";
import { loginHoldMs } from "./vault-hold.ts";

describe("loginHoldMs", () => {
  const MINUTE_MS = 60_000;
  it("is zero before the first refusal, never decreases, and has a maximum", () => {
    const holds = Array.from({ length: 2_000 }, (_, refusals) => loginHoldMs(refusals));
    expect(holds.slice(0, 5)).toEqual([0, 1, 4, 16, 16].map((minutes) => minutes * MINUTE_MS));
    for (const [index, hold] of holds.entries()) expect(hold).toBeGreaterThanOrEqual(holds[index - 1] ?? 0);
    expect(Math.max(...holds)).toBe(16 * MINUTE_MS);
    expect(loginHoldMs(Number.MAX_SAFE_INTEGER)).toBe(16 * MINUTE_MS);
    expect(loginHoldMs(-1)).toBe(0);
  });

  it("allows no five failed logins with less than a quarter of an hour between each two", () => {
    let inARow = 1;
    for (let refusals = 1; refusals < 100; refusals += 1) {
      inARow = loginHoldMs(refusals) < 15 * MINUTE_MS ? inARow + 1 : 1;
      expect(inARow).toBeLessThan(5);
    }
  });
});
