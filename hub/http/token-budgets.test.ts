import { describe, expect, it } from "vitest";
import { ApiError } from "../../shared/api/errors.ts";
import { TOKEN_RATES } from "../gateway/budgets.ts";
import { TokenBudgets } from "./token-budgets.ts";

const clock = () => {
  const time = { now: 0 };
  return { time, budgets: new TokenBudgets(undefined, () => time.now) };
};

describe("a token's budget", () => {
  it("is not reached by ten consoles, a list of a fleet, and a script that onboards the fleet", () => {
    const { time, budgets } = clock();
    budgets.chargeNew("t", "admin", ["request"]);
    for (let second = 0; second < 1_800; second += 1, time.now += 1_000) {
      if (second % 2 === 0) for (let n = 0; n < 10 * 21; n += 1) budgets.chargeKnown("t", ["request"]);
      for (let n = 0; n < 20; n += 1) budgets.chargeKnown("t", ["request"]);
      for (let n = 0; n < 20; n += 1) budgets.chargeKnown("t", ["request", "write"]);
    }
    for (let n = 0; n < 400; n += 1) budgets.chargeKnown("t", ["request", "write"]);
  });

  it("belongs to one token, tells when the next request is allowed, and counts changes separately", () => {
    const { time, budgets } = clock();
    budgets.chargeNew("one", "script", ["request"]);
    budgets.chargeNew("other", "console", ["request"]);
    const refused = (() => {
      for (let n = 0; ; n += 1)
        try {
          budgets.chargeKnown("one", ["request", "write"]);
        } catch (error) {
          return { error: error as ApiError, after: n };
        }
    })();
    expect(refused).toMatchObject({
      after: TOKEN_RATES.write.burst,
      error: { code: "rate_limited", retryAfterSeconds: 1, message: expect.stringContaining("The token script") },
    });
    expect(budgets.chargeKnown("one", ["request"])).toBe(true);
    expect(budgets.chargeKnown("other", ["request", "write"])).toBe(true);
    expect(() => budgets.chargeKnown("one", ["request", "write"])).toThrow(ApiError);
    time.now += 1_000;
    expect(budgets.chargeKnown("one", ["request", "write"])).toBe(true);
  });

  it("is kept only for valid tokens, and is forgotten when it is full", () => {
    const { time, budgets } = clock();
    expect([budgets.chargeKnown("unknown", ["request"]), budgets.size]).toEqual([false, 0]);
    for (let n = 0; n < 1_000; n += 1) budgets.chargeNew(`t${n}`, "t", ["request"]);
    time.now += 60_000;
    budgets.chargeNew("last", "t", ["request"]);
    expect(budgets.size).toBe(1);
  });
});
