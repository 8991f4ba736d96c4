import { expect, it } from "vitest";
import { pointsOf, type Sample, wordsOf } from "./trend.ts";

const samples = (...values: number[]): Sample[] => values.map((value, n) => ({ at: 1_000 + n * 500, value }));
const SIZE = { width: 100, height: 20 };

it("draws the samples from zero to the largest one", () => {
  expect(pointsOf(samples(0, 5, 10), SIZE)).toBe("0,20 50,10 100,0");
  expect(pointsOf(samples(0, 0), SIZE)).toBe("0,20 100,20");
  expect(pointsOf([{ at: 5, value: 3 }], SIZE)).toBe("0,0");
  expect(
    pointsOf(
      [
        { at: 0, value: 1 },
        { at: 100, value: 1 },
        { at: 400, value: 2 },
      ],
      SIZE,
    ),
  ).toBe("0,10 25,10 100,0");
});

it("says what the line shows", () => {
  expect(wordsOf(samples(1_200, 3, 7))).toBe("now 7, least 3, most 1,200");
});
