import { describe, expect, it } from "vitest";
import { isMiscopied, newToken } from "./token-text.ts";

describe("the text of a token", () => {
  it("has the kind in its beginning, and is another one each time", () => {
    const many = Array.from({ length: 200 }, () => newToken("api"));
    expect(new Set(many).size).toBe(200);
    for (const token of many) expect(token).toMatch(/^mstr_api_[0-9A-Za-z]{49}$/);
    expect(newToken("first")).toMatch(/^mstr_first_[0-9A-Za-z]{49}$/);
    // All letters and digits occur, so no letter is left out by the draw.
    expect(new Set(many.map((token) => token.slice(9, -6)).join("")).size).toBe(62);
  });

  it("shows each wrong letter by its checksum", () => {
    const token = newToken("api");
    expect(isMiscopied(token)).toBe(false);
    for (let at = 5; at < token.length; at += 1) {
      const other = token[at] === "a" ? "b" : "a";
      expect(isMiscopied(token.slice(0, at) + other + token.slice(at + 1)), `letter ${at}`).toBe(true);
    }
    expect(isMiscopied(token.slice(0, -1))).toBe(true);
    expect(isMiscopied("mstr_")).toBe(true);
  });

  it("says nothing about tokens of an older version", () => {
    expect(isMiscopied("k3vJ-oldtoken")).toBe(false);
  });
});
