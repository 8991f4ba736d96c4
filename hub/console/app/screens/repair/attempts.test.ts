import { expect, it } from "vitest";
import { attemptsOf, recentOf } from "./attempts.ts";
import type { Entry } from "./repair-questions.ts";

const entry = (name: Entry["entry"], attempt: number, day: number, message = name as string): Entry => ({
  ...{ at: `2026-03-${String(day).padStart(2, "0")}T00:00:00.000Z`, entry: name, attempt },
  ...{ actor: "fixers", message, details: {} },
});

const TIMELINE: readonly Entry[] = [
  entry("opened", 0, 1),
  entry("requested", 0, 1),
  entry("claimed", 1, 2),
  entry("access_given", 1, 2),
  entry("claim_extended", 1, 3),
  entry("lapsed", 1, 4),
  entry("escalated", 1, 5),
  entry("requested", 1, 6),
  entry("claimed", 2, 7),
];

it("tells the attempts of a timeline: each ends once, and a claim without an end is under way", () => {
  expect(attemptsOf(TIMELINE)).toMatchObject([
    { number: 1, by: "fixers", hasAccess: true, end: { as: "lapsed", at: "2026-03-04T00:00:00.000Z" } },
    { number: 2, hasAccess: false, end: null },
  ]);
  const ended = attemptsOf([...TIMELINE, entry("handed_over", 2, 8, "the board is broken")]);
  expect(ended[1]?.end).toMatchObject({ as: "handed_over", said: "the board is broken" });
  expect(attemptsOf([entry("opened", 0, 1), entry("completed", 0, 2)])).toEqual([]);
});

it("counts the attempts of the last 30 days", () => {
  const at = (iso: string): number => recentOf(attemptsOf(TIMELINE), Date.parse(iso));
  expect([at("2026-03-20T00:00:00Z"), at("2026-04-03T00:00:00Z"), at("2026-05-01T00:00:00Z")]).toEqual([2, 1, 0]);
});
