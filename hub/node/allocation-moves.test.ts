import { expect, it } from "vitest";
import { ALLOCATION_STATUSES } from "../../shared/allocation-status.ts";
import { ALLOCATION_MOVES, type AllocationMove } from "./allocation-moves.ts";

it("an open allocation can always be ended, and an ended one never changes", () => {
  for (const status of ALLOCATION_STATUSES.filter((one) => one !== "ended" && one !== "ending"))
    expect(ALLOCATION_MOVES[status]).toContain("ending");
  expect(ALLOCATION_MOVES.ending).toEqual(["ended"]);
  expect(ALLOCATION_MOVES.ended).toEqual([]);
});

it("a move that the table does not have does not compile", () => {
  // @ts-expect-error: an active allocation is never granted again
  const back: AllocationMove = { from: "active", to: "granting" };
  // @ts-expect-error: an allocation ends only after its node was cleaned
  const hurried: AllocationMove = { from: "active", to: "ended" };
  expect([back, hurried]).toHaveLength(2);
});
