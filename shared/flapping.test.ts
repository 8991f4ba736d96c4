import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { afterChange, type ChangeHistory, FLAPPING, heldFrom, isFlapping } from "./flapping.ts";

const begin = new Date("2026-01-01T00:00:00Z");
const at = (seconds: number): Date => new Date(begin.getTime() + seconds * 1000);
const NEW: ChangeHistory = { counted: [], changedAt: begin, flappingSince: null };
/** The seconds at which a condition changes, each later than the one before. */
const changes = fc
  .array(fc.oneof(fc.integer({ min: 0, max: 60 }), fc.constantFrom(9, 10, 225, 299, 300, 301, 900)), { maxLength: 30 })
  .map((gaps) => gaps.map((_, place) => gaps.slice(0, place + 1).reduce((sum, gap) => sum + gap, 0)));
const after = (times: readonly number[]): ChangeHistory => times.reduce((one, time) => afterChange(one, at(time)), NEW);
const flapsAt = (times: readonly number[], second: number) => isFlapping(after(times), at(second));

describe("a condition that changes", () => {
  it.each([
    ["four times in 15 minutes", [0, 300, 600, 900], true],
    ["four times in more than 15 minutes", [0, 300, 600, 901], false],
    ["three times", [0, 60, 120], false],
    ["often within ten seconds", [0, 1, 2, 3, 4, 5, 9], false],
    ["once a second", Array.from({ length: 40 }, (_, n) => n), true],
    ["never", [], false],
  ])("%s flaps or not", (_, times, flaps) => {
    expect(flapsAt(times, times.at(-1) ?? 0)).toBe(flaps);
  });

  it("property: flaps after too many changes, and until it has held for the hold time", () => {
    fc.assert(
      fc.property(changes, fc.nat(1_000), (times, later) => {
        const last = times.at(-1) ?? 0;
        const flaps = flapsAt(times, last + later);
        // It ends by itself, whatever came before.
        if (later >= FLAPPING.holdSeconds) expect(flaps).toBe(false);
        else expect(flaps).toBe(flapsAt(times, last));
        // Few changes never flap, and many that are apart always do.
        const recent = times.filter((time) => time >= last - FLAPPING.windowSeconds);
        if (times.length < FLAPPING.changes) expect(flaps).toBe(false);
        const apart: number[] = [];
        for (const time of recent)
          if (apart.length === 0 || time - (apart.at(-1) ?? 0) >= FLAPPING.apartSeconds) apart.push(time);
        if (times.length === recent.length && apart.length >= FLAPPING.changes && later < FLAPPING.holdSeconds)
          expect(flaps).toBe(true);
      }),
    );
  });

  it("property: keeps a bounded history, and the begin of the flapping while it goes on", () => {
    fc.assert(
      fc.property(changes, (times) => {
        let before = NEW;
        for (const time of times) {
          const next = afterChange(before, at(time));
          expect(next.counted.length).toBeLessThanOrEqual(FLAPPING.changes);
          expect(next.changedAt).toEqual(at(time));
          if (isFlapping(before, at(time))) expect(next.flappingSince).toEqual(before.flappingSince);
          if (next.flappingSince !== null) expect(isFlapping(next, at(time))).toBe(true);
          expect(heldFrom(next.changedAt)).toEqual(at(time + FLAPPING.holdSeconds));
          before = next;
        }
      }),
    );
  });
});
