import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { judgeAttempt, MOST_ATTEMPTS, reasonOf, retryAfterSeconds } from "./delivery-policy.ts";

const answered = (status: number, retryAfterSeconds: number | null = null) =>
  ({ answered: true, status, retryAfterSeconds }) as const;
const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

describe("the verdict on a delivery attempt", () => {
  it("property: delivers on every 2xx, ends on 410, and retries otherwise until the last attempt", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 100, max: 599 }),
        fc.integer({ min: 1, max: 20 }),
        random,
        (status, attempt, dice) => {
          const { kind } = judgeAttempt(answered(status), attempt, dice);
          const failed = attempt < MOST_ATTEMPTS ? "retry" : "dead";
          expect(kind).toBe(status >= 200 && status < 300 ? "delivered" : status === 410 ? "gone" : failed);
        },
      ),
    );
  });

  it("property: waits longer each time, with a fifth of jitter, and at least as long as the receiver requests, up to a day", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: MOST_ATTEMPTS - 1 }),
        random,
        fc.integer({ min: 0, max: 1e9 }),
        (attempt, dice, asked) => {
          const wait = judgeAttempt({ answered: false, reason: "x" }, attempt, dice);
          const longer = judgeAttempt(answered(503, asked), attempt, dice);
          if (wait.kind !== "retry" || longer.kind !== "retry") throw new Error("no retry");
          expect(longer.inSeconds).toBeGreaterThanOrEqual(Math.min(asked, 86_400));
          expect(longer.inSeconds).toBeLessThanOrEqual(Math.max(86_400, wait.inSeconds));
          const next = judgeAttempt({ answered: false, reason: "x" }, attempt + 1, dice);
          if (next.kind === "retry") expect(next.inSeconds).toBeGreaterThan(wait.inSeconds);
        },
      ),
    );
  });

  it("accepts Retry-After as seconds and as an HTTP date", () => {
    const now = new Date("2026-01-01T00:00:00Z");
    const asked = (header: string | undefined) => retryAfterSeconds(header, now);
    expect(asked("120")).toBe(120);
    expect(asked("Thu, 01 Jan 2026 02:00:00 GMT")).toBe(7200);
    expect(asked("Wed, 31 Dec 2025 23:00:00 GMT")).toBe(0);
    for (const unreadable of [undefined, "", "soon", "1e9", "-5", "GMT"]) expect(asked(unreadable)).toBeNull();
  });

  it("gives the reason of a failed attempt", () => {
    expect(reasonOf(answered(502))).toBe("The receiver answered 502");
    expect(reasonOf({ answered: false, reason: "no route" })).toBe("no route");
  });
});
