import { describe, expect, it } from "vitest";
import { toDate, toDateOrNull } from "./timestamp.ts";

describe("toDate", () => {
  it.each([
    ["2026-01-02 03:04:05+00", "2026-01-02T03:04:05.000Z"],
    ["2026-01-02 03:04:05.123456+00", "2026-01-02T03:04:05.123Z"],
    ["2026-01-02 03:04:05.1+05:30", "2026-01-01T21:34:05.100Z"],
    ["2026-01-02 03:04:05-08", "2026-01-02T11:04:05.000Z"],
  ])("converts %s", (text, iso) => {
    expect(toDate(text).toISOString()).toBe(iso);
  });

  it.each(["infinity", "", "2026-01-02", 12, null, undefined])("refuses %s", (value) => {
    expect(() => toDate(value)).toThrow(TypeError);
  });

  it("returns a Date unchanged and, with toDateOrNull, null", () => {
    const now = new Date();
    expect(toDate(now)).toBe(now);
    expect(toDateOrNull(null)).toBeNull();
    expect(toDateOrNull("2026-01-02 03:04:05+00")?.getUTCFullYear()).toBe(2026);
  });
});
