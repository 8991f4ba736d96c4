import { describe, expect, it } from "vitest";
import { breatherMs, EVENT_OVERLAP, failurePauseMs, queryFrom, readFeed, sweepIsDue, toRead, wordOf } from "./plan.ts";

const event = (id: number, node: string) => ({
  id,
  node,
  type: "Node changed status",
  created: "Sat, 21 Nov. 2026 08:00:00",
});
const seen = (...events: ReturnType<typeof event>[]) => new Map(events.map((one) => [one.id, wordOf(one)]));

describe("the watcher's plan", () => {
  it("reads an overlap below the cursor, never below zero", () => {
    expect(queryFrom(1000)).toBe(1000 - EVENT_OVERLAP);
    expect(queryFrom(3)).toBe(0);
  });

  it("processes an event that was committed late, below the cursor, and only once", () => {
    const late = event(998, "abc123");
    const known = event(1000, "def456");
    const place = { cursor: 1000, mark: wordOf(known) };
    const feed = readFeed(place, [late, known], seen(known), known);
    expect(feed).toEqual({ ...place, reset: false, changed: ["abc123"] });
    expect(readFeed(place, [late, known], seen(late, known), known).changed).toEqual([]);
  });

  it("detects that the ids went back, and follows them", () => {
    const newest = event(12, "abc123");
    const behind = { cursor: 12, mark: wordOf(newest), reset: true, changed: [] };
    for (const mark of ["another word", null])
      expect(readFeed({ cursor: 1000, mark }, [], new Map(), newest)).toEqual(behind);
    const none = { cursor: 0, mark: null, reset: true, changed: [] };
    expect(readFeed({ cursor: 1000, mark: "a word" }, [], new Map(), null)).toEqual(none);
  });

  it("detects by the events' content that the ids went back, even if they have passed the cursor again", () => {
    const before = event(1000, "abc123");
    const after = { ...event(1000, "abc123"), created: "Sun, 22 Nov. 2026 08:00:00" };
    const newest = event(1001, "def456");
    const reset = { cursor: 1001, mark: wordOf(newest), reset: true, changed: ["abc123", "def456"] };
    expect(readFeed({ cursor: 1000, mark: null }, [after, newest], seen(before), newest)).toEqual(reset);
    // A hub that remembers no events, e.g. after its start, knows only the newest event's content, from the database.
    const place = { cursor: 1000, mark: wordOf(before) };
    expect(readFeed(place, [after, newest], new Map(), newest)).toEqual(reset);
    expect(readFeed(place, [newest], new Map(), newest)).toMatchObject({ reset: true });
    expect(readFeed(place, [before, newest], new Map(), newest)).toMatchObject({ reset: false });
    expect(readFeed({ ...place, mark: null }, [after, newest], new Map(), newest)).toMatchObject({ reset: false });
  });

  it("reads each machine once, whether it changed or a stage waits on it", () => {
    expect(toRead(["b", "a"], ["c", "a"])).toEqual(["a", "b", "c"]);
  });

  it("pauses longer after each failure, at most a minute beyond the interval", () => {
    expect(failurePauseMs(1, 1000, 0)).toBe(1000);
    expect(failurePauseMs(3, 1000, 0.999)).toBeLessThan(9_000);
    expect(failurePauseMs(500, 1000, 0.999)).toBeLessThanOrEqual(61_000);
  });

  it("begins with a sweep, and sweeps again after the interval", () => {
    expect(sweepIsDue(null, 5_000)).toBe(true);
    expect(sweepIsDue(4_000, 5_000)).toBe(false);
    expect(sweepIsDue(5_000, 5_000)).toBe(true);
  });

  it("pauses after a slow read, so that a slow region is not busy all the time", () => {
    expect([breatherMs(0), breatherMs(3_000)]).toEqual([0, 12_000]);
  });
});
