import { expect, it } from "vitest";
import { waitAfter } from "./backoff.ts";

it("waits twice as long after each failure, at most half a minute, and never all consoles at once", () => {
  expect([1, 2, 3, 4, 5, 6, 100].map((failures) => waitAfter(failures, 1))).toEqual([
    1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000,
  ]);
  expect(waitAfter(3, 0)).toBe(2_000);
});
