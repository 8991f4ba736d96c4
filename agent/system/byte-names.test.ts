import { describe, expect, it } from "vitest";
import { bytesOfName, shownName, textOfName } from "./byte-names.ts";

describe("names of files as text", () => {
  it.each<[string, number[], string]>([
    ["an ASCII name", [0x61, 0x2e, 0x62], "a.b"],
    ["a name with each length of UTF-8 characters", [...Buffer.from("aä€😀")], "aä€😀"],
    ["single bytes", [0xff, 0xfe], "\\xff\\xfe"],
    ["a cut character between others", [0x61, 0xe2, 0x82, 0x62], "a\\xe2\\x82b"],
    ["a character and a byte", [...Buffer.from("ä"), 0x80], "ä\\x80"],
    ["half of a surrogate pair", [0xed, 0xb2, 0x80], "\\xed\\xb2\\x80"],
  ])("%s", (_what, bytes, shown) => {
    const text = textOfName(Buffer.from(bytes));
    expect([...bytesOfName(text)]).toEqual(bytes);
    expect(shownName(text)).toBe(shown);
  });

  it("each byte alone leads back to itself", () => {
    for (let byte = 1; byte < 256; byte += 1) expect([...bytesOfName(textOfName(Buffer.from([byte])))]).toEqual([byte]);
  });
});
