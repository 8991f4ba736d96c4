import { expect, it } from "vitest";
import { APPROVAL_STATES } from "../../../shared/api/approvals.ts";
import { mayMove } from "./approval-moves.ts";
import { mayBeAnybody, mayBeOne } from "./identities.ts";

it("an approval is used only after somebody has approved it, and nothing follows its end", () => {
  const after = Object.fromEntries(
    APPROVAL_STATES.map((from) => [from, APPROVAL_STATES.filter((to) => mayMove(from, to))]),
  );
  expect(after).toEqual({
    pending: ["approved", "refused", "expired", "withdrawn"],
    approved: ["approved", "refused", "used", "expired", "withdrawn"],
    refused: [],
    used: [],
    expired: [],
    withdrawn: [],
  });
});

it("two callers may be one person if somebody has seen the secrets of both, or if nobody knows who has", () => {
  expect(mayBeOne(["person:ann"], ["person:bob"])).toBe(false);
  expect(mayBeOne(["person:ann", "person:bob"], ["person:bob"])).toBe(true);
  expect(mayBeOne(["anybody"], ["person:bob"])).toBe(true);
  expect(mayBeOne(["person:bob"], ["anybody"])).toBe(true);
  expect(mayBeOne([], ["person:bob"])).toBe(true);
  expect(mayBeOne(["person:bob"], [])).toBe(true);
});

it("a credential of which the hub knows a token, or nobody, may be in the hands of anybody", () => {
  expect(mayBeAnybody(["person:ann", "person:bob"])).toBe(false);
  for (const unknown of [[], ["anybody"], ["token:1"], ["person:ann", "token:1"], ["person:ann", "anybody"]])
    expect([unknown, mayBeAnybody(unknown)]).toEqual([unknown, true]);
});
