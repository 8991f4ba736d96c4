import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Counted, countResult, UNCOUNTED as NEW, type ProbeResult, toldResult } from "./probe-verdict.ts";

const passed: ProbeResult = { kind: "passed", saw: "It answered." };
const failed: ProbeResult = { kind: "failed", reason: "Refused", saw: "It refused." };
const unknown: ProbeResult = { kind: "unknown", reason: "NoAddress", saw: "It has no address." };
const threshold = fc.integer({ min: 1, max: 10 });
const thresholds = fc.record({ successes: threshold, failures: threshold });
const results = fc.array(fc.constantFrom(passed, failed, unknown), { maxLength: 40 });

describe("the count of a probe's results", () => {
  it("property: has the status that enough equal results in a row gave last, and Unknown before and after no address", () => {
    fc.assert(
      fc.property(results, thresholds, (all, limits) => {
        let expected: Counted["status"] = "Unknown";
        let counted = NEW;
        for (const [at, result] of all.entries()) {
          counted = countResult(counted, result, limits);
          const inRow = (kind: string) => all.slice(0, at + 1).findLastIndex((one) => one.kind !== kind);
          if (result.kind === "unknown") expected = "Unknown";
          if (result.kind === "passed" && at - inRow("passed") >= limits.successes) expected = "True";
          if (result.kind === "failed" && at - inRow("failed") >= limits.failures) expected = "False";
          expect(counted.status).toBe(expected);
          expect(Math.min(counted.successes, counted.failures)).toBe(0);
          expect(toldResult(counted, result, limits).status).toBe(expected);
        }
      }),
    );
  });

  it.each([
    [NEW, passed, 2, { status: "Unknown", reason: "Probing", message: /^It answered[.] .*1 of the 2 successes/ }],
    [NEW, failed, 2, { status: "Unknown", reason: "Probing", message: /1 of the 2 failures/ }],
    [NEW, passed, 1, { status: "True", reason: "Answered", message: /^It answered[.]$/ }],
    [NEW, failed, 1, { status: "False", reason: "Refused", message: /^It refused[.]$/ }],
    [{ status: "True", successes: 2, failures: 0 }, failed, 2, { status: "True", reason: "Failing", message: /1 of/ }],
    [
      { status: "False", successes: 0, failures: 2 },
      passed,
      2,
      { status: "False", reason: "Recovering", message: /1 of/ },
    ],
    [
      { status: "True", successes: 2, failures: 0 },
      unknown,
      2,
      { status: "Unknown", reason: "NoAddress", message: /^It has/ },
    ],
  ] as const)("tells %j and %j with %i needed", (before, result, needed, { status, reason, message }) => {
    const limits = { successes: needed, failures: needed };
    const told = toldResult(countResult(before, result, limits), result, limits);
    expect(told).toMatchObject({ status, reason });
    expect(told.message).toMatch(message);
  });
});
