import { expect, it } from "vitest";
import { releaseBody, type Said } from "./release.ts";

const NOTHING: Said = {
  isFaulty: false,
  issue: { category: "Network", summary: " rail 2 ", details: "" },
  outcome: "",
  isAccess: false,
};

it("sends a fault only if the machine is faulty", () => {
  expect(releaseBody("ticket 1", NOTHING)).toEqual({ reason: "ticket 1" });
  expect(releaseBody("ticket 1", { ...NOTHING, isFaulty: true })).toEqual({
    reason: "ticket 1",
    machine_health_issue: { category: "Network", summary: "rail 2", details: null },
  });
});

it("reports a repair only if the allocation is the access of one", () => {
  const said: Said = { ...NOTHING, outcome: "Completed" };
  expect(releaseBody("done", said)).toEqual({ reason: "done" });
  expect(releaseBody("done", { ...said, isAccess: true })).toEqual({
    reason: "done",
    is_repair_tenant: true,
    repair_status: "Completed",
  });
  expect(releaseBody("done", { ...NOTHING, isAccess: true })).toEqual({ reason: "done", is_repair_tenant: true });
});
