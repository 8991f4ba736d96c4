import { describe, expect, it } from "vitest";
import { WORKFLOW_STATUSES } from "../../../shared/workflow-status.ts";
import { UsageError } from "../errors.ts";

import { NOUN_LIST, NOUNS } from "../nouns/index.ts";
import { durationOf } from "./duration.ts";
import { goalOf, standardGoal } from "./goal.ts";

describe("the goal of a wait", () => {
  it("of an operation is its end, of which every status is success, failure, or none of them", () => {
    const { reached } = goalOf(NOUNS.onboardings, "done");
    expect(Object.fromEntries(WORKFLOW_STATUSES.map((status) => [status, reached({ status })]))).toEqual({
      pending: "no",
      running: "no",
      compensating: "no",
      completed: "yes",
      reconciled: "yes",
      cancelled: "never",
      failed_retryable: "never",
      failed_manual_intervention: "never",
    });
    expect(reached(null)).toBe("never");
  });

  it("of a batch is its end without a failed or cancelled host", () => {
    const { reached } = goalOf(NOUNS.batches, "done");
    const batch = { done: true, failed: 0, cancelled: 0 };
    expect(
      [{ ...batch, done: false }, batch, { ...batch, failed: 1 }, { ...batch, cancelled: 1 }].map(reached),
    ).toEqual(["no", "yes", "never", "never"]);
  });

  it("is a condition of a node, by default with the value True", () => {
    const node = { status: "active", conditions: [{ type: "agent.healthy", status: "False" }] };
    const reached = (text: string) => goalOf(NOUNS.nodes, text).reached(node);
    expect(reached("condition=agent.healthy")).toBe("no");
    expect(reached("condition=agent.healthy=False")).toBe("yes");
    expect(goalOf(NOUNS.nodes, "condition=agent.healthy").reached({ ...node, status: "deleted" })).toBe("never");
    expect(() => goalOf(NOUNS.skus, "condition=agent.healthy")).toThrow(UsageError);
  });

  it("is any field of the object, and cannot be reached by a deleted one", () => {
    const { reached } = goalOf(NOUNS.nodes, "location.rack=r7");
    expect(reached({ status: "active", location: { rack: "r7" } })).toBe("yes");
    expect(reached({ status: "active", location: { rack: null } })).toBe("no");
    expect(reached({ status: "deleted", location: { rack: null } })).toBe("never");
    expect(goalOf(NOUNS.nodes, "status=deleted").reached({ status: "deleted" })).toBe("yes");
    expect(goalOf(NOUNS.operations, "status=running").reached({ status: "cancelled" })).toBe("never");
    expect(() => goalOf(NOUNS.nodes, "colour=red").reached({ status: "active" })).toThrow(
      "A node has no field colour.",
    );
  });

  it("is that the object is gone", () => {
    const { reached } = goalOf(NOUNS.nodes, "deleted");
    expect([null, { status: "deleted" }, { status: "active" }].map(reached)).toEqual(["yes", "yes", "no"]);
  });

  it("is refused if nobody could mean it", () => {
    for (const text of ["", "status", "=x", "status="]) expect(() => goalOf(NOUNS.nodes, text)).toThrow(UsageError);
    expect(() => goalOf(NOUNS.nodes, "done")).toThrow("A node has no end.");
    const ends = NOUN_LIST.filter((noun) => standardGoal(noun) !== undefined).map(({ plural }) => plural);
    expect(ends).toEqual(["onboardings", "decommissions", "operations", "batches"]);
  });
});

it("a time is read with its unit, and refused if it is none or no timer could hold it", () => {
  expect(["5", "90s", "30m", "2h", "1d"].map((text) => durationOf(text, "--timeout") / 1000)).toEqual([
    5, 90, 1_800, 7_200, 86_400,
  ]);
  for (const text of ["", "0", "0h", "-1", "1.5h", "2w", "25d", "99999999"])
    expect(() => durationOf(text, "--timeout")).toThrow(UsageError);
});
