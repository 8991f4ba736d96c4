import { spawnSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { shellHeader, shellQuote } from "./shell-quote.ts";

const bash = (script: string) => spawnSync("bash", ["-c", script], { encoding: "utf8" });
const nasty = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.string({
    unit: fc.constantFrom("'", '"', "\\", "$", "`", "(", ")", "\n", "\r", "!", "#", "{", "}", ";", "&", " ", "a"),
  }),
);
const texts = nasty.filter((text) => !text.includes("\0") && text.isWellFormed());

describe("shellQuote", () => {
  it("passes every text unchanged through a real bash, many words in one script", () => {
    fc.assert(
      fc.property(fc.array(texts, { minLength: 1, maxLength: 40 }), (words) => {
        const result = bash(`printf '%s\\0' ${words.map(shellQuote).join(" ")}`);
        expect(result.stderr).toBe("");
        expect(result.stdout.split("\0").slice(0, -1)).toEqual(words);
      }),
      { numRuns: 100 },
    );
  });

  it("passes values and lists unchanged through header variables, under set -eu", () => {
    fc.assert(
      fc.property(texts, fc.array(texts, { minLength: 1, maxLength: 5 }), (text, list) => {
        const result = bash(`set -eu\n${shellHeader({ TEXT: text, LIST: list })}printf '%s\\0' "$TEXT" "\${LIST[@]}"`);
        expect(result.stderr).toBe("");
        expect(result.stdout.split("\0").slice(0, -1)).toEqual([text, ...list]);
      }),
      { numRuns: 50 },
    );
  });

  it("refuses NUL, which a shell word cannot contain", () => {
    expect(() => shellQuote("a\0b")).toThrow(RangeError);
  });
});
