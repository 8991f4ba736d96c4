import { describe, expect, it } from "vitest";
import { CLOUD_EVENT, CLOUD_EVENT_BATCH, toPlainBody } from "./signal-bodies.ts";

const DATA = {
  node: { hostname: "c09u42" },
  generation: 2,
  conditions: [{ type: "fabric.ready", status: "True", reason: "Up", message: "" }],
};
const EVENT = {
  specversion: "1.0",
  id: "e 1",
  source: "/fabric/dc1",
  type: "com.example.fabric.ready",
  time: "2026-01-01T12:00:00Z",
  traceparent: "00-x",
  data: DATA,
};
const SIGNAL = {
  ...DATA,
  signal_id: "%2Ffabric%2Fdc1#e%201",
  conditions: [{ observed_at: "2026-01-01T12:00:00Z", ...DATA.conditions[0] }],
};
const read = (contentType: string, body: unknown, headers: Readonly<Record<string, string>> = {}) =>
  toPlainBody({ contentType, header: (name) => headers[name], text: JSON.stringify(body) });

describe("the body of a request with signals", () => {
  it("is the same signal as a structured, a batched and a binary CloudEvent", () => {
    expect(read(CLOUD_EVENT, EVENT)).toEqual(SIGNAL);
    expect(read(`${CLOUD_EVENT}; charset=UTF-8`, EVENT)).toEqual(SIGNAL);
    expect(read(CLOUD_EVENT_BATCH, [EVENT, EVENT])).toEqual({ signals: [SIGNAL, SIGNAL] });
    const { specversion, id, source, type, time } = EVENT;
    const attributes = { specversion, id: encodeURIComponent(id), source, type, time };
    const headers = Object.fromEntries(Object.entries(attributes).map(([name, value]) => [`ce-${name}`, value]));
    expect(read("application/json", DATA, headers)).toEqual(SIGNAL);
  });

  it("keeps plain JSON as it is", () => {
    expect(read("application/json", { signal_id: "1" })).toEqual({ signal_id: "1" });
  });

  it("names the node by the subject of the event, if its data names none", () => {
    const { node: _none, ...data } = DATA;
    const named = (subject: string) => read(CLOUD_EVENT, { ...EVENT, subject, data });
    expect(named("c09u42")).toMatchObject({ node: { hostname: "c09u42" } });
    expect(named("nodes/11111111-1111-4111-8111-111111111111")).toMatchObject({
      node: { id: "11111111-1111-4111-8111-111111111111" },
    });
    expect(read(CLOUD_EVENT, { ...EVENT, subject: "other" })).toMatchObject({ node: DATA.node });
  });

  it("has an id that no other event has, within the length of an id", () => {
    const idOf = (source: string, id: string) =>
      (read(CLOUD_EVENT, { ...EVENT, source, id }) as { signal_id: string }).signal_id;
    const names = [
      ["s", "1 2"],
      ["s", "1_2"],
      ["s", "1\t2"],
      ["a#b", "c"],
      ["a", "b#c"],
      ["\u{1f600}".repeat(100), "1"],
      ["\u{1f601}".repeat(100), "1"],
    ] as const;
    const ids = names.map(([source, id]) => idOf(source, id));
    expect(new Set(ids).size).toBe(names.length);
    for (const id of ids) expect(id).toMatch(/^[\x21-\x7e]{1,336}$/);
    expect(ids[0]).toBe("s#1%202");
    for (const id of ["\u0000", "\ud83d"])
      expect(() => idOf("s", id)).toThrow(expect.objectContaining({ code: "validation_failed" }));
  });

  it("keeps a time that a condition names itself", () => {
    const own = { ...DATA.conditions[0], observed_at: "2026-01-01T11:00:00Z" };
    expect(read(CLOUD_EVENT, { ...EVENT, data: { ...DATA, conditions: [own] } })).toMatchObject({ conditions: [own] });
  });

  it.each([
    ["another media type", "text/plain", EVENT, "unsupported_media_type"],
    ["no media type", "", EVENT, "unsupported_media_type"],
    ["another version", CLOUD_EVENT, { ...EVENT, specversion: "0.3" }, "validation_failed"],
    ["no data", CLOUD_EVENT, { ...EVENT, data: undefined }, "validation_failed"],
    ["no list", CLOUD_EVENT_BATCH, EVENT, "validation_failed"],
    ["an empty list", CLOUD_EVENT_BATCH, [], "validation_failed"],
    ["a long list", CLOUD_EVENT_BATCH, Array(101).fill(EVENT), "validation_failed"],
  ])("is refused with %s", (_what, type, body, code) => {
    expect(() => read(type, body)).toThrow(expect.objectContaining({ code }));
  });

  it("keeps a wrong event of a list beside the right ones", () => {
    expect(read(CLOUD_EVENT_BATCH, [{ id: 1 }, EVENT])).toEqual({ signals: [{ id: 1 }, SIGNAL] });
  });

  it("is refused if it is no JSON", () => {
    for (const contentType of ["application/json", CLOUD_EVENT])
      expect(() => toPlainBody({ contentType, header: () => undefined, text: "{" })).toThrow(
        expect.objectContaining({ code: "malformed_json" }),
      );
  });
});
