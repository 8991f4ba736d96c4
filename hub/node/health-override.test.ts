import { expect, it } from "vitest";
import { isEnoughErase } from "./health-override.ts";

it.each([
  ["quick", "quick", true],
  ["quick", "secure", false],
  ["quick", null, false],
  ["secure", "quick", true],
  ["secure", "secure", true],
  ["secure", null, true],
] as const)("an erase of the kind %s where %s is needed", (done, needed, enough) => {
  expect(isEnoughErase(done, needed)).toBe(enough);
});
