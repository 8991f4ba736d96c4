import { describe, expect, it } from "vitest";
import { ageOf, at, cellOf, coloured } from "./cells.ts";
import { csvText } from "./csv.ts";
import { hasColours } from "./print.ts";
import { tableText } from "./table.ts";

describe("a cell", () => {
  it("is one line without control characters, whatever the value is", () => {
    expect(["a\nb", "\u001b[2J", null, "", [], ["a", "b"], { x: 1, y: null }, {}, false, 0].map(cellOf)).toEqual([
      "a b",
      "?[2J",
      ...["-", "-", "-"],
      "a, b",
      "x=1 y=-",
      ...["-", "false", "0"],
    ]);
  });

  it("is the field of a record, also of a record whose fields have dots", () => {
    expect(at({ a: { b: { c: 1 } } }, "a.b.c")).toBe(1);
    expect(at({ a: { "b.c": 2 } }, "a.b.c")).toBe(2);
    expect([at({ a: null }, "a.b"), at(null, "a"), at({ a: [1] }, "a.0")]).toEqual([undefined, undefined, undefined]);
  });

  it("shows a time as the time since then", () => {
    const now = Date.parse("2026-01-02T00:00:00Z");
    const ages = [
      "2026-01-01T23:59:59Z",
      "2026-01-01T23:58:01Z",
      "2026-01-01T23:58:00Z",
      "2026-01-01T22:00:00Z",
      "2025-12-30T00:00:00Z",
      "2026-01-02T01:00:00Z",
      "soon",
    ];
    expect(ages.map((time) => ageOf(time, now))).toEqual(["1s", "119s", "2m", "2h", "3d", "+60m", "soon"]);
  });

  it("has the colour of its meaning only if it is a word of a state", () => {
    expect(coloured("active")).toBe("\u001b[32mactive\u001b[39m");
    expect(coloured("activex")).toBe("activex");
  });
});

describe("colours", () => {
  const look = (env: Record<string, string>, isTerminal = true) =>
    ({ env, isTerminal }) as Parameters<typeof hasColours>[1];
  it("are for a terminal, unless the flag or the environment says otherwise", () => {
    expect(hasColours("auto", look({}))).toBe(true);
    expect(hasColours("auto", look({}, false))).toBe(false);
    expect(hasColours("auto", look({ NO_COLOR: "1" }))).toBe(false);
    expect(hasColours("auto", look({ NO_COLOR: "" }))).toBe(true);
    expect(hasColours("auto", look({ TERM: "dumb" }))).toBe(false);
    expect(hasColours("always", look({ NO_COLOR: "1" }, false))).toBe(true);
    expect(hasColours("never", look({}))).toBe(false);
  });
});

describe("a table", () => {
  it("has columns as wide as their widest cell, and no spaces at the end of a line", () => {
    const rows = [
      ["c07u41", "active"],
      ["é", "-"],
    ];
    expect(tableText(["HOST", "STATUS"], rows, { headers: true, colours: false })).toBe(
      "HOST    STATUS\nc07u41  active\né       -\n",
    );
    expect(tableText(["HOST", "STATUS"], rows, { headers: false, colours: true })).toBe(
      "c07u41  \u001b[32mactive\u001b[39m\né       \u001b[2m-\u001b[22m\n",
    );
  });
});

describe("CSV", () => {
  it("quotes what needs it, and lets no program take a text for a formula", () => {
    expect(
      csvText([
        ["a,b", 'say "x"', "l1\nl2"],
        ["=1+1", "@x", "-1", "+49.5", "-cmd"],
      ]),
    ).toBe('"a,b","say ""x""","l1\nl2"\r\n\'=1+1,\'@x,-1,+49.5,\'-cmd\r\n');
  });
});
