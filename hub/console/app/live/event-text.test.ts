import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EventText } from "./event-text.ts";

describe("the text of an event stream", () => {
  const text = [
    ": still here\n\n",
    'id: 7\nevent: a.b\ndata: {"x":1}\n\n',
    "data: one\ndata: two\n\n",
    "id: 9\n\n",
  ].join("");
  const messages = [
    { id: "7", data: '{"x":1}' },
    { id: null, data: "one\ntwo" },
    { id: "9", data: null },
  ];

  it("has the same messages wherever the pieces end, and with either line end", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(text.length), { maxLength: 6 }), (cuts) => {
        const ends = [0, ...cuts.sort((a, b) => a - b), text.length];
        const reader = new EventText();
        const read = ends.slice(1).flatMap((end, n) => reader.take(text.slice(ends[n], end)));
        expect(read).toEqual(messages);
      }),
    );
    expect(new EventText().take(text.replaceAll("\n", "\r\n"))).toEqual(messages);
  });

  it("keeps an unfinished message back", () => {
    const reader = new EventText();
    expect(reader.take("id: 1\ndata: x\n")).toEqual([]);
    expect(reader.take("\n")).toEqual([{ id: "1", data: "x" }]);
  });
});
