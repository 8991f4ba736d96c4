import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ArrayElements, BrokenArray } from "./array-elements.ts";

/**
 * Returns the elements that the parser finds in a text which arrives in pieces of the given lengths. Returns null if the parser refuses the text.
 */
function elementsOf(text: Buffer, lengths: readonly number[] = [text.length + 1], maxBytes = 1e6): unknown[] | null {
  const elements: unknown[] = [];
  const array = new ArrayElements((element) => elements.push(element), maxBytes);
  try {
    for (let at = 0, n = 0; at < text.length; n += 1) {
      const length = lengths[n % lengths.length] ?? 1;
      array.push(text.subarray(at, at + length));
      at += length;
    }
    array.end();
    return elements;
  } catch (error) {
    if (error instanceof BrokenArray) return null;
    throw error;
  }
}
function parsed(text: Buffer): unknown[] | null {
  try {
    const value: unknown = JSON.parse(text.toString("utf8"));
    return Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

const lengths = fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1, maxLength: 5 });
const anyArray = fc
  .tuple(fc.array(fc.jsonValue({ stringUnit: "binary" })), fc.constantFrom("", " ", "\t", "\r\n"))
  .map(([value, indent]) => Buffer.from(`${indent}${JSON.stringify(value, null, indent)}${indent}`));
/** Test texts that are almost JSON arrays, made of characters that have a meaning in JSON and of some other characters. */
const nearly = fc
  .array(fc.constantFrom("[", "]", "{", "}", ",", ":", '"', "\\", " ", "\n", "1", "a", '"k":', "null", "é", "\u00a0"), {
    maxLength: 12,
  })
  .map((parts) => Buffer.from(parts.join("")));
const damaged = fc.tuple(anyArray, fc.nat(), fc.constantFrom("cut", "drop", "twice")).map(([text, at, how]) => {
  const place = at % text.length;
  if (how === "cut") return text.subarray(0, place);
  return Buffer.concat([
    text.subarray(0, how === "twice" ? place + 1 : place),
    text.subarray(place + (how === "drop" ? 1 : 0)),
  ]);
});

describe("the elements of an array", () => {
  it("property: equal those of JSON.parse, however the text is cut", () => {
    fc.assert(
      fc.property(anyArray, lengths, (text, cuts) => {
        expect(elementsOf(text, cuts)).toEqual(JSON.parse(text.toString("utf8")));
      }),
    );
  });

  it("property: are accepted from exactly the texts that JSON.parse accepts as an array", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          nearly,
          nearly.map((text) => Buffer.concat([Buffer.from("["), text, Buffer.from("]")])),
          damaged,
        ),
        lengths,
        (text, cuts) => {
          expect(elementsOf(text, cuts)).toEqual(parsed(text));
        },
      ),
      { numRuns: 3_000 },
    );
  });

  it("are skipped one by one if they are too large, and no later element is lost", () => {
    const text = Buffer.from(`[1,${JSON.stringify({ long: ["x".repeat(500), "]"] })},2]`);
    expect(elementsOf(text, [7], 100)).toEqual([1, undefined, 2]);
  });
});
