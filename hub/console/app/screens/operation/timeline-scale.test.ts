import { describe, expect, it } from "vitest";
import { foldsOf, idleOf, scaleOf, ticksOf } from "./timeline-scale.ts";

const MINUTE = 60_000;
const span = (from: number, to: number) => ({ from: from * MINUTE, to: to * MINUTE });

describe("the axis of a timeline", () => {
  it("finds the idle times between busy ones, cut where the meaning changes", () => {
    expect(idleOf([span(0, 2), span(10, 11)], [5 * MINUTE], 0, 12 * MINUTE)).toEqual([
      span(2, 5),
      span(5, 10),
      span(11, 12),
    ]);
    expect(idleOf([span(0, 12)], [3 * MINUTE], 0, 12 * MINUTE)).toEqual([]);
  });

  it("folds a wait that is far longer than all the rest, and no usual one", () => {
    const usual = [span(2, 20), span(22, 30)];
    expect(foldsOf(usual, 0, 35 * MINUTE)).toEqual([]);
    expect(foldsOf([...usual, span(35, 600)], 0, 610 * MINUTE)).toEqual([span(35, 600)]);
    expect(foldsOf([span(1, 500), span(501, 1000)], 0, 1001 * MINUTE)).toEqual([span(1, 500), span(501, 1000)]);
    expect(foldsOf([span(0, 4)], 0, 4 * MINUTE)).toEqual([]);
    expect(foldsOf([], 0, MINUTE)).toEqual([]);
  });

  it("gives each time a place that rises with the time, from 0 to 1", () => {
    const scale = scaleOf({ from: 0, to: 610 * MINUTE, until: 640 * MINUTE, folds: [span(10, 600)] });
    expect(scale.parts.map(({ kind }) => kind)).toEqual(["time", "fold", "time", "future"]);
    const places = [-5, 0, 5, 10, 300, 600, 610, 625, 640, 700].map((time) => scale.at(time * MINUTE));
    expect(places).toEqual([...places].sort((a, b) => a - b));
    expect(places[0]).toBe(0);
    expect(places.at(-1)).toBeCloseTo(1);
    // The ten minutes before the fold and the ten minutes after it have the same length.
    expect(scale.at(5 * MINUTE) * 2).toBeCloseTo(scale.at(610 * MINUTE) - scale.at(600 * MINUTE));
  });

  it("keeps a place for every part however many times are folded", () => {
    const folds = Array.from({ length: 30 }, (_, n) => span(n * 100 + 1, n * 100 + 100));
    const scale = scaleOf({ from: 0, to: 3000 * MINUTE, until: 3000 * MINUTE, folds });
    expect(scale.parts.every(({ width }) => width > 0)).toBe(true);
    expect(scale.at(3000 * MINUTE)).toBeCloseTo(1);
  });

  it("marks round lengths of time, never too near to each other", () => {
    const scale = scaleOf({ from: 500, to: 500 + 35 * MINUTE, until: 500 + 35 * MINUTE, folds: [] });
    const ticks = ticksOf(scale, 0.11);
    expect(ticks.map(({ time }) => (time - 500) / MINUTE)).toEqual([0, 5, 10, 15, 20, 25, 30]);
    const folded = scaleOf({ from: 0, to: 610 * MINUTE, until: 700 * MINUTE, folds: [span(10, 600)] });
    const places = ticksOf(folded, 0.11).map(({ at }) => at);
    expect(places.every((at, n) => n === 0 || at - (places[n - 1] ?? 0) >= 0.11)).toBe(true);
    expect(ticksOf(scaleOf({ from: 0, to: 1, until: 1, folds: [] }), 0.11)).toEqual([{ time: 0, at: 0 }]);
  });
});
