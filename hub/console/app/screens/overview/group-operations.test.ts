import { expect, it } from "vitest";
import { isOf, type Operation, planOf } from "./group-operations.ts";

const failed = {
  failure_class: "upstream_transient",
  error_code: "maas_timeout",
  next_action: "Look at MAAS",
  next_verb: "retry",
} as const;

it("takes an operation into a group only if failure, next action and next verb are the same", () => {
  expect(isOf(failed, failed)).toBe(true);
  const unnamed = { ...failed, failure_class: "unknown", error_code: "unknown" };
  expect(isOf(unnamed, { ...failed, failure_class: null, error_code: null })).toBe(true);
  const others = [
    { failure_class: "state_ambiguity" },
    { error_code: "maas_refused" },
    { next_action: null },
    { next_verb: "rerun" },
  ] as const;
  expect(others.filter((other) => isOf(failed, { ...failed, ...other }))).toEqual([]);
});

it("leaves out operations whose earlier verb waits", () => {
  const one = (id: string, pending: "retry" | null) => ({ operation_id: id, pending_verb: pending }) as Operation;
  const plan = planOf("retry", [one("a", null), one("b", "retry")]);
  expect([plan.taken, plan.waiting].map((list) => list.map(({ operation_id: id }) => id))).toEqual([["a"], ["b"]]);
});
