import { expect, it } from "vitest";
import { z } from "zod";
import { parse } from "./problem.ts";

const nested = (levels: number): unknown => JSON.parse("[".repeat(levels) + "]".repeat(levels));

it("refuses deeply nested input, and does not look into it", () => {
  expect(parse(z.unknown(), nested(64), "body")).toEqual(nested(64));
  for (const levels of [65, 20_000])
    expect(() => parse(z.unknown(), nested(levels), "body")).toThrow(
      expect.objectContaining({ code: "validation_failed" }),
    );
});
