import { describe, expect, it } from "vitest";
import { lengthOf, relativeWords } from "./relative-words.ts";

describe("a time seen from now", () => {
  it.each([
    [0, "just now"],
    [-9, "just now"],
    [-45, "40 s ago"],
    [-60, "1 min ago"],
    [-3_599, "59 min ago"],
    [-3_600, "1 h ago"],
    [-47 * 3_600, "47 h ago"],
    [-3 * 86_400, "3 d ago"],
    [120, "in 2 min"],
  ])("that is %d s away is %s", (seconds, words) => {
    expect(relativeWords(1e12 + seconds * 1000, 1e12)).toBe(words);
  });
});

describe("a length of time", () => {
  it.each([
    [0.4, "0 s"],
    [59, "59 s"],
    [61, "1 min 1 s"],
    [3_540, "59 min"],
    [7_800, "2 h 10 min"],
    [7_200, "2 h"],
    [90_000, "1 d 1 h"],
    [20 * 86_400, "20 d"],
  ])("of %d s is %s", (seconds, words) => {
    expect(lengthOf(seconds)).toBe(words);
  });
});
