import { expect, it } from "vitest";
import { ANYBODY } from "../people/actor.ts";
import { checkSecondPerson, NeedsApproval } from "./approval.ts";
import type { Call, Route } from "./route.ts";

const CALL = { actor: ANYBODY, address: null, requestId: "r", deps: {} } as unknown as Call;

const judge = async (isAsked: boolean, ids: readonly string[] | null) => {
  const asked = { siteId: "s", because: [{ entry: "erase", profile: "p" }], does: "Erase." };
  const route = {
    secondPerson: async () => (isAsked ? asked : null),
    fixes: async () => (ids === null ? null : { of: "nodes", ids }),
  };
  return checkSecondPerson({} as never, route as unknown as Route, CALL, undefined);
};

it.each([true, false])(
  "a write to other nodes than those that the hub judged is refused, if asked is %s",
  async (asked) => {
    const check = await judge(asked, ["a", "b"]);
    for (const touched of [["a"], ["a", "c"], ["a", "b", "c"], []])
      expect(() => check.mustBeApproved(touched)).toThrow(/^The nodes that the request concerns changed .* again\.$/);
  },
);

it("a write to the judged nodes, in any order, waits for a second person or is carried out", async () => {
  const check = await judge(true, ["a", "b"]);
  expect(() => check.mustBeApproved(["b", "a"])).toThrow(NeedsApproval);
  for (const [ids, touched] of [
    [
      ["a", "b"],
      ["b", "a"],
    ],
    [["a"], undefined],
    [null, ["a"]],
  ] as const)
    expect((await judge(false, ids)).mustBeApproved(touched)).toBeUndefined();
});
