import { describe, expect, it } from "vitest";
import { STOP_VERBS, type StopVerb, WORKFLOW_STATUSES } from "../../../shared/workflow-status.ts";
import {
  effectAtCommit,
  effectOf as effectOn,
  RECOVERY,
  STANDINGS,
  VERBS,
  type Verb,
  type VerbTarget,
} from "./recovery.ts";

const effectOf = (verb: Verb, status: VerbTarget["status"], more: Partial<VerbTarget> = {}) =>
  effectOn(verb, {
    status,
    ran: status !== "pending",
    adopting: false,
    frozen: false,
    undoing: null,
    leased: false,
    requested: null,
    ...more,
  });

describe("the table of verbs", () => {
  it("has an effect for every verb in every status", () => {
    for (const verb of VERBS) expect(Object.keys(RECOVERY[verb]).sort()).toEqual([...STANDINGS].sort());
  });

  it.each(["completed", "reconciled"] as const)("changes no workflow that is %s", (status) => {
    for (const verb of VERBS) expect(["refused", "already"]).toContain(effectOf(verb, status));
  });

  it("continues a failed workflow as the verb says", () => {
    for (const status of ["failed_retryable", "failed_manual_intervention"] as const) {
      expect(effectOf("retry", status)).toBe("retry_stage");
      expect(effectOf("resume", status)).toBe("resume_from_checkpoint");
      expect(effectOf("rerun", status)).toBe("rerun_from_top");
      expect(effectOf("restart_clean", status)).toBe("undo_and_restart");
      expect(effectOf("cancel", status)).toBe("undo_and_cancel");
      expect(effectOf("adopt", status)).toBe("adopt_observed");
    }
  });

  it("answers a repeated request without another change of the row", () => {
    expect(effectOf("retry", "pending")).toBe("already");
    expect(effectOf("resume", "running")).toBe("already");
    expect(effectOf("restart_clean", "pending")).toBe("already");
    expect(effectOf("cancel", "cancelled")).toBe("already");
    expect(effectOf("adopt", "reconciled")).toBe("already");
    expect(effectOf("mark_manual_intervention", "failed_manual_intervention", { frozen: true })).toBe("already");
    expect(effectOf("restart_clean", "compensating", { undoing: "restart" })).toBe("already");
    expect(effectOf("cancel", "compensating", { undoing: "cancel" })).toBe("already");
  });

  it("stops a workflow at once if no hub is running it", () => {
    expect(effectOf("cancel", "running")).toBe("undo_and_cancel");
    expect(effectOf("restart_clean", "running")).toBe("undo_and_restart");
    expect(effectOf("mark_manual_intervention", "running")).toBe("freeze");
    expect(effectOf("cancel", "compensating")).toBe("end_as_cancelled");
    expect(effectOf("cancel", "pending")).toBe("cancel_now");
  });

  it("compensates a pending workflow that has run before", () => {
    expect(effectOf("cancel", "pending", { ran: true })).toBe("undo_and_cancel");
    expect(effectOf("restart_clean", "pending", { ran: true })).toBe("undo_and_restart");
    for (const verb of ["retry", "resume", "rerun"] as const)
      expect(effectOf(verb, "pending", { ran: true })).toBe("already");
  });

  it("applies `adopt` to a pending workflow that has run before, once", () => {
    expect(effectOf("adopt", "pending", { ran: true })).toBe("adopt_observed");
    expect(effectOf("adopt", "pending", { ran: true, adopting: true })).toBe("already");
  });

  it("freezes a failed workflow, so that only an operator continues it", () => {
    expect(effectOf("mark_manual_intervention", "failed_manual_intervention")).toBe("freeze");
  });

  it("ends a compensation after a failure or for a restart as cancelled if an operator cancels", () => {
    for (const undoing of ["failure", "restart"] as const) {
      expect(effectOf("cancel", "compensating", { undoing })).toBe("end_as_cancelled");
    }
  });

  it("stops a workflow that a hub is running when the run ends, once", () => {
    for (const verb of STOP_VERBS) {
      expect(effectOf(verb, "running", { leased: true })).toBe("at_commit");
      expect(effectOf(verb, "running", { leased: true, requested: verb })).toBe("already");
      // If the hub has released the row or has stopped, the next hub that claims the row carries out the recorded verb.
      expect(effectOf(verb, "running", { requested: verb })).toBe("already");
    }
    expect(effectOf("cancel", "compensating", { leased: true, undoing: "restart" })).toBe("at_commit");
    expect(effectOf("resume", "running", { leased: true })).toBe("already");
  });

  it("treats a workflow with a recorded verb that stops it as already stopped", () => {
    for (const leased of [true, false]) {
      const waitsFor = (requested: StopVerb) => ({ leased, requested });
      expect(effectOf("restart_clean", "running", waitsFor("cancel"))).toBe("refused");
      expect(effectOf("resume", "running", waitsFor("cancel"))).toBe("refused");
      expect(effectOf("cancel", "running", waitsFor("restart_clean"))).toBe("at_commit");
      expect(effectOf("mark_manual_intervention", "running", waitsFor("restart_clean"))).toBe("at_commit");
      expect(effectOf("restart_clean", "running", waitsFor("mark_manual_intervention"))).toBe("at_commit");
      // While a recorded `cancel`, `restart_clean` or `mark_manual_intervention` waits for the run's end, no verb such as `resume` continues the
      // workflow.
      expect(effectOf("resume", "running", waitsFor("mark_manual_intervention"))).toBe("refused");
    }
  });

  it("carries out a recorded verb that stops the workflow after the run, unless the workflow has ended for good", () => {
    const left = (status: VerbTarget["status"], undoing: VerbTarget["undoing"] = null): VerbTarget => ({
      ...{ status, undoing, ran: true, adopting: false, frozen: false, leased: false, requested: null },
    });
    for (const status of WORKFLOW_STATUSES) {
      const over = ["completed", "reconciled", "cancelled"].includes(status);
      const undoing = status === "compensating" ? "failure" : null;
      expect(effectAtCommit("cancel", left(status, undoing))).toBe(
        over ? "already" : status === "compensating" ? "end_as_cancelled" : "undo_and_cancel",
      );
      expect(effectAtCommit("restart_clean", left(status, undoing))).toBe(over ? "already" : "undo_and_restart");
      expect(effectAtCommit("mark_manual_intervention", left(status, undoing))).toBe(over ? "already" : "freeze");
    }
    expect(effectAtCommit("restart_clean", left("compensating", "restart"))).toBe("already");
    expect(effectAtCommit("cancel", left("compensating", "cancel"))).toBe("already");
  });

  it("refuses to continue a workflow that is compensating", () => {
    for (const verb of ["retry", "resume", "rerun", "restart_clean", "adopt"] as const) {
      expect(effectOf(verb, "compensating")).toBe("refused");
    }
  });
});
