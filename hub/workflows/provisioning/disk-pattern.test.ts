import { describe, expect, it } from "vitest";
import { holdPattern, isEndless, repeatedGroups, worstTexts } from "./disk-pattern.ts";

/** The match of an endless pattern takes practically for ever, so most tests end the match before the hub would, to save processor time. */
const EARLY_MS = 100;

describe("a boot disk pattern", () => {
  it("with endless backtracking is detected at the hub's own limit", () => {
    const began = performance.now();
    expect(isEndless("(a+)+$")).toBe(true);
    expect(performance.now() - began).toBeGreaterThan(900);
  });

  it.each([
    "^(\\w+\\s?)*$",
    "(a|a)*b",
    "(x+x+)+y",
    "(boss|boss)*z",
    "^(.*)*z$",
    "(\\d+)+x",
    "([a-z]+ ?)+_",
    "^Dell BOSS-(a+)+$",
    "^(boss|m\\.2 ?)+x(\\d*)*$",
  ])("with endless backtracking is detected: %s", (pattern) => expect(isEndless(pattern, EARLY_MS)).toBe(true));

  it.each([
    "boss|boot optimized|m\\.2",
    "SAMSUNG.*480",
    "^(boss|m\\.2).*(480|960) ?GB$",
    "(?:DELL|HPE).*BOSS-[NS]\\d+",
    "\\bM\\.2\\b",
    "a+b+c+",
    "(\\d+){2}GB",
    "[(]a+[)]+",
    "\\(a+\\)+",
    "(not an expression",
    "x".repeat(256),
  ])("without endless backtracking is accepted: %s", (pattern) => expect(isEndless(pattern)).toBe(false));

  it("is tested with each repeated group alone", () => {
    expect(repeatedGroups("x(a(b+)*c)+[(](d)\\((e){2,}?(f)?")).toEqual([
      "(b+)*\u0002",
      "(a(b+)*c)+\u0002",
      "(e){2,}?\u0002",
    ]);
  });

  it("is tested on a limited number of texts of limited length", () => {
    const texts = worstTexts("ab-9 ".repeat(51));
    expect(texts.length).toBeLessThan(700);
    for (const text of texts) expect(text.length).toBeLessThanOrEqual(257);
  });

  it("matches the texts that contain it, whatever pattern ran before", () => {
    expect(holdPattern([["DELLBOSS VD"], ["nvme0n1"]], "boss")).toEqual([true, false]);
  });
});
