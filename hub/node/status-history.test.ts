import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { NODE_STATUSES } from "../../shared/node-status.ts";
import { RECORD_VERDICTS } from "../../shared/sanitization-record.ts";
import { type Change, changesOfCleaning, changesOfUse, statusHistory } from "./status-history.ts";

const at = (minute: number): Date => new Date(Date.UTC(2026, 0, 1, 0, minute));
const node = (minute: number, status: (typeof NODE_STATUSES)[number]): Change => ({
  at: at(minute),
  message: "moved",
  node: status,
});
const IN_SERVICE = [node(0, "bootstrap_issued"), node(1, "enrolling"), node(2, "active")];
const use = { id: "i1", tenant: "acme", beganAt: at(10), endingAt: null, endedAt: null };
const record = { id: "r1", verdict: "clean" as const };
const told = (changes: readonly Change[]) => statusHistory(changes).map(({ status, at }) => [status, at.getMinutes()]);

describe("the status history of a machine", () => {
  it("has Reset between InUse and Ready after a cleaning with a record", () => {
    const cleaning = { operation: "op", beganAt: at(20), endedAt: at(31), record };
    const changes = [
      ...IN_SERVICE,
      ...changesOfUse({ ...use, endingAt: at(20), endedAt: at(30) }),
      ...changesOfCleaning(cleaning),
    ];
    expect(told(changes)).toEqual([
      ["Initializing", 0],
      ["Ready", 2],
      ["InUse", 10],
      ["Reset", 20],
      ["Ready", 31],
    ]);
    expect(statusHistory(changes).at(3)?.message).toContain("sanitization record r1: clean");
  });

  it("has no Reset for an operation that ended without a record", () => {
    const changes = [
      ...IN_SERVICE,
      ...changesOfUse({ ...use, endingAt: at(20), endedAt: at(30) }),
      ...changesOfCleaning({ operation: "op", beganAt: at(20), endedAt: at(31), record: null }),
    ];
    expect(told(changes).map(([status]) => status)).toEqual(["Initializing", "Ready", "InUse", "Error", "Ready"]);
  });

  it.each(RECORD_VERDICTS.filter((one) => one !== "clean"))(
    "has no Reset for a record whose verdict is %s",
    (verdict) => {
      const ended = { operation: "op", beganAt: at(20), endedAt: at(31), record: { id: "r1", verdict } };
      expect(changesOfCleaning(ended)).toEqual([]);
      expect(changesOfCleaning({ ...ended, endedAt: null })).toMatchObject([{ cleaning: true }]);
    },
  );

  it("shows a cleaning that runs, and an error after one that failed", () => {
    const during = [...IN_SERVICE, ...changesOfUse({ ...use, endingAt: at(20) })];
    const running = changesOfCleaning({ operation: "op", beganAt: at(20), endedAt: null, record: null });
    expect(told([...during, ...running]).at(-1)).toEqual(["Reset", 20]);
    expect(told(during).at(-1)).toEqual(["Error", 20]);
  });

  it("keeps the time of each change, and shows a person's cordon only on a free machine", () => {
    const cordon: Change = { at: at(5), message: "a fan", cordoned: true };
    expect(told([...IN_SERVICE, cordon])).toContainEqual(["Maintenance", 5]);
    expect(told([...IN_SERVICE, cordon, ...changesOfUse(use)]).at(-1)).toEqual(["InUse", 10]);
  });

  it("does not depend on the order of the changes of different times, and never repeats a status", () => {
    const change = fc.record({
      minute: fc.uniqueArray(fc.integer({ min: 0, max: 59 }), { minLength: 1, maxLength: 12 }),
    });
    const facts = fc.constantFrom<Record<string, unknown>>(
      ...NODE_STATUSES.map((status) => ({ node: status })),
      { use: "open" },
      { use: "ending" },
      { use: "none" },
      { cleaning: true },
      { cleaning: false },
      { cordoned: true },
    );
    fc.assert(
      fc.property(change, fc.array(facts, { minLength: 12, maxLength: 12 }), ({ minute }, said) => {
        const changes = minute.map((one, index) => ({ at: at(one), message: "", ...said[index] }) as Change);
        const history = statusHistory(changes);
        expect(statusHistory(changes.toReversed())).toEqual(history);
        for (const [index, entry] of history.entries()) {
          expect(entry.status).not.toBe(history[index + 1]?.status);
          if (index > 0) expect(entry.at.getTime()).toBeGreaterThan(history[index - 1]?.at.getTime() ?? 0);
        }
      }),
      { numRuns: 200 },
    );
  });
});
