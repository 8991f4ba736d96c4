import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseJson } from "./json-text.ts";

describe("a host's JSON", () => {
  it("is what JSON.parse gives, where the database can store that", () => {
    const value = fc.json().filter((text) => JSON.stringify(parseJson(text)).isWellFormed());
    fc.assert(
      fc.property(value, (text) => {
        fc.pre(!/\\u(0000|d[89a-f])/i.test(text));
        expect(parseJson(text)).toEqual(JSON.parse(text));
      }),
    );
  });

  it("holds no NUL and no half surrogate, in values or names, however deep", () => {
    const text = '{"a\\u0000":["x\\uD800y",{"\\udfff":"\\u0000"}],"ok":"\\ud83d\\ude00 \\\\u0000"}';
    expect(parseJson(text)).toEqual({ "a\ufffd": ["x\ufffdy", { "\ufffd": "\ufffd" }], ok: "\u{1f600} \\u0000" });
  });

  it("that is none throws a SyntaxError", () => {
    expect(() => parseJson('{"\\u0000"')).toThrow(SyntaxError);
  });
});
