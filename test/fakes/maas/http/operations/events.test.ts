import { expect, test } from "vitest";
import type { MaasEvent } from "../../state/model.ts";
import { eventTime, pageOf } from "./events.ts";

const events = Array.from(
  { length: 10 },
  (_, index): MaasEvent => ({
    id: index + 1,
    systemId: "abcdef",
    level: "INFO",
    type: "Ready",
    description: "",
    username: "unknown",
    created: 0,
  }),
);

function ids(page: readonly MaasEvent[]): number[] {
  return page.map((event) => event.id);
}

test("without a bound, a page has the newest events, newest first", () => {
  expect(ids(pageOf(events, 3, null, null))).toEqual([10, 9, 8]);
});

test("`after` takes the oldest events after the bound and lists them newest first", () => {
  expect(ids(pageOf(events, 3, null, 4))).toEqual([7, 6, 5]);
  expect(ids(pageOf(events, 3, null, 8))).toEqual([10, 9]);
  expect(ids(pageOf(events, 3, null, 10))).toEqual([]);
});

test("`before` takes the newest events below the bound", () => {
  expect(ids(pageOf(events, 3, 4, null))).toEqual([3, 2, 1]);
  expect(ids(pageOf(events, 3, 9, null))).toEqual([8, 7, 6]);
});

test("times have no zone, whole seconds, and a point after a shortened month", () => {
  expect(eventTime(Date.UTC(2026, 10, 20, 20, 35, 49, 900))).toBe("Fri, 20 Nov. 2026 20:35:49");
  expect(eventTime(Date.UTC(2026, 4, 1, 0, 0, 0))).toBe("Fri, 01 May 2026 00:00:00");
});
