import { describe, expect, it } from "vitest";
import { inOrder, verbNames, whyNot, whyNotForced } from "./operation-verbs.ts";

const standing = { pending_verb: null, started_at: "2026-01-01T00:00:00Z" } as const;
const allowed = (status: never, given = {}): string[] =>
  verbNames.filter((verb) => whyNot(verb, { ...standing, status, ...given }) === null);

describe("the verbs of an operation", () => {
  it("offers what the status allows, and gives a reason for the others", () => {
    expect(allowed("failed_retryable" as never)).toEqual(verbNames);
    expect(allowed("running" as never)).toEqual(["retry", "restart_clean", "cancel", "mark_manual_intervention"]);
    expect(allowed("compensating" as never)).toEqual(["cancel", "mark_manual_intervention"]);
    expect(allowed("pending" as never, { started_at: null })).toEqual(["cancel", "mark_manual_intervention"]);
    for (const status of ["completed", "cancelled", "reconciled"]) expect(allowed(status as never)).toEqual([]);
  });

  it("offers only another stop while a stop waits for the end of a run", () => {
    expect(allowed("running" as never, { pending_verb: "cancel" })).toEqual([
      "restart_clean",
      "mark_manual_intervention",
    ]);
    expect(whyNot("retry", { ...standing, status: "running", pending_verb: "cancel" })).toContain(
      "Cancel takes effect",
    );
  });

  it("forces only what can go on without the agent", () => {
    expect(whyNotForced("drain", "running")).toBeNull();
    expect(whyNotForced("full_decommission", "failed_retryable")).toBeNull();
    for (const kind of ["release", "reinstall", "soft_reset", "storage_cleanup"] as const)
      expect(whyNotForced(kind, "failed_retryable")).not.toBeNull();
    expect(whyNotForced("drain", "completed")).not.toBeNull();
  });

  it("puts the recommended verb first and leaves none out", () => {
    expect(inOrder("rerun")[0]).toBe("rerun");
    expect([...inOrder("rerun")].sort()).toEqual([...verbNames].sort());
    expect(inOrder(null)).toBe(verbNames);
  });
});
