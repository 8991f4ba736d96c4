import { describe, expect, it } from "vitest";
import { breakerTrips, moveLimit } from "./breaker.ts";

describe("the breaker", () => {
  it("lets five nodes of a small site change status, and a fifth of a large one", () => {
    expect([0, 8, 25, 29, 30, 1_000].map(moveLimit)).toEqual([5, 5, 5, 5, 6, 200]);
  });
  it("trips above the limit, for status changes at once or within the window", () => {
    expect(breakerTrips({ wouldMove: 5, moved: 0, inService: 8 })).toBe(false);
    expect(breakerTrips({ wouldMove: 6, moved: 0, inService: 8 })).toBe(true);
    expect(breakerTrips({ wouldMove: 1, moved: 5, inService: 8 })).toBe(true);
    expect(breakerTrips({ wouldMove: 200, moved: 0, inService: 1_000 })).toBe(false);
    expect(breakerTrips({ wouldMove: 201, moved: 0, inService: 1_000 })).toBe(true);
  });
  it("does not trip when no node is to change status", () => {
    expect(breakerTrips({ wouldMove: 0, moved: 50, inService: 8 })).toBe(false);
  });
});
