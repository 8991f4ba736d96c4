import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { boundedJson, Json } from "../../shared/json.ts";
import { parseJson } from "./json-text.ts";

const dataOf = (text: string): unknown => parseJson(Json, text).data;

describe("a host's JSON", () => {
  it("equals the result of JSON.parse if the database can store it", () => {
    const value = fc.json().filter((text) => JSON.stringify(dataOf(text)).isWellFormed());
    fc.assert(
      fc.property(value, (text) => {
        // The test skips texts with `__proto__`, because the schema drops a member of this name on purpose.
        fc.pre(!/\\u(0000|d[89a-f])|__proto__/i.test(text));
        expect(dataOf(text)).toEqual(JSON.parse(text));
      }),
    );
  });

  it("contains no NUL and no half surrogate, in values or names, at any depth", () => {
    const text = '{"a\\u0000":["x\\uD800y",{"\\udfff":"\\u0000"}],"ok":"\\ud83d\\ude00 \\\\u0000"}';
    expect(dataOf(text)).toEqual({ "a\ufffd": ["x\ufffdy", { "\ufffd": "\ufffd" }], ok: "\u{1f600} \\u0000" });
  });

  it("throws a SyntaxError if it is not JSON", () => {
    expect(() => parseJson(Json, '{"\\u0000"')).toThrow(SyntaxError);
  });

  it("is repaired only where its schema accepted it, and not while it is parsed", () => {
    const parsing = vi.spyOn(JSON, "parse");
    const repairing = vi.spyOn(String.prototype, "toWellFormed");
    try {
      const schema = z.strictObject({ text: z.string() });
      expect(parseJson(schema, '{"other":"a\\u0000"}').success).toBe(false);
      expect(repairing).not.toHaveBeenCalled();
      expect(parseJson(schema, '{"text":"a\\u0000"}').data).toEqual({ text: "a\ufffd" });
      expect(parsing.mock.calls.map((args) => args.length)).toEqual([1, 1]);
    } finally {
      vi.restoreAllMocks();
    }
  });
});

describe("JSON without a shape", () => {
  const bounds = { depth: 3, values: 6, characters: 10 };
  const schema = boundedJson(bounds);
  const nested = (depth: number): unknown => (depth === 0 ? 1 : [nested(depth - 1)]);

  it.each([
    ["as deep as may be", nested(3), true],
    ["one level deeper", nested(4), false],
    ["as many values as may be", [1, 2, 3, 4, 5], true],
    ["one value more", [1, 2, 3, 4, 5, 6], false],
    ["one value more, on two levels", [1, 2, [3, 4, 5]], false],
    ["as many characters as may be, names among them", { abcde: "12345" }, true],
    ["one character more", { abcde: "123456" }, false],
    ["one character more in a name", { abcdef: "12345" }, false],
    ["what is no JSON", { a: undefined }, false],
    ["a number that JSON cannot say", [Number.NaN], false],
    ["nothing", null, true],
  ])("is accepted or refused by its size: %s", (_what, value, taken) => {
    expect(schema.safeParse(value).success).toBe(taken);
  });

  it("is accepted exactly within its bounds, for any JSON", () => {
    const count = (value: unknown): { depth: number; values: number; characters: number } => {
      if (typeof value === "string") return { depth: 0, values: 1, characters: value.length };
      if (value === null || typeof value !== "object") return { depth: 0, values: 1, characters: 0 };
      const members = Object.values(value).map(count);
      const names = Array.isArray(value) ? 0 : Object.keys(value).join("").length;
      return {
        depth: 1 + Math.max(0, ...members.map((one) => one.depth)),
        values: 1 + members.reduce((sum, one) => sum + one.values, 0),
        characters: names + members.reduce((sum, one) => sum + one.characters, 0),
      };
    };
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
        const { depth, values, characters } = count(value);
        const within = depth <= bounds.depth && values <= bounds.values && characters <= bounds.characters;
        expect(schema.safeParse(value).success).toBe(within);
      }),
    );
  });
});
