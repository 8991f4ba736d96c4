import { expect, it } from "vitest";
import { type ApprovableRequest, type Fixed, requestHash } from "./ask-approval.ts";

const REQUEST: ApprovableRequest = {
  operation: "releaseNode",
  neededRight: "operate_nodes",
  params: { id: "1" },
  body: { reason: "r", mode: "m" },
  fixed: { of: "nodes", ids: ["a", "b"] },
};
const hash = (change: Partial<ApprovableRequest> = {}): string => requestHash({ ...REQUEST, ...change });

it("an approval is for one operation, its parameters, its body and the objects that it found", () => {
  const others: Partial<ApprovableRequest>[] = [
    { operation: "removeNode" },
    { params: { id: "2" } },
    { params: { id: "1", of: "2" } },
    { body: { reason: "r", mode: "n" } },
    { body: { reason: "r" } },
    { fixed: null },
    ...[
      { of: "machines", ids: ["a", "b"] },
      { of: "nodes", ids: ["a"] },
      { of: "nodes", ids: ["a", "b", "c"] },
    ].map((fixed) => ({ fixed: fixed as Fixed })),
  ];
  const hashes = [{}, ...others].map(hash);
  expect(new Set(hashes).size).toBe(hashes.length);
});

it("the order of fields and of the found objects makes no other request", () => {
  expect(hash({ body: { mode: "m", reason: "r" }, fixed: { of: "nodes", ids: ["b", "a"] } })).toBe(hash());
});
