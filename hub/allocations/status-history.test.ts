import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { NODE_STATUSES, type NodeStatus } from "../../shared/node-status.ts";
import { RECORD_VERDICTS, type RecordVerdict } from "../../shared/sanitization-record.ts";
import { type HistoryEvent, statusHistory } from "./status-history.ts";

const at = new Date(0);
const moved = (to: NodeStatus): HistoryEvent => ({ what: "moved", to, message: "m", at });
const began: HistoryEvent = { what: "tenancy_began", tenant: "acme", at };
const ended: HistoryEvent = { what: "tenancy_ended", at };
const sanitized = (verdict: RecordVerdict): HistoryEvent => ({ what: "sanitized", verdict, at });
const shown = (...events: readonly HistoryEvent[]) => statusHistory(events).map(({ status }) => status);
const service = [moved("enrolling"), moved("active")] as const;

describe("the status history of a machine", () => {
  it("shows Reset between InUse and Ready after a soft reset and after a reimage", () => {
    expect(shown(...service, began, sanitized("clean"), ended)).toEqual([
      "Initializing",
      "Ready",
      "InUse",
      "Reset",
      "Ready",
    ]);
    expect(shown(...service, began, moved("enrolling"), moved("active"), sanitized("clean"), ended)).toEqual([
      "Initializing",
      "Ready",
      "InUse",
      "Initializing",
      "InUse",
      "Reset",
      "Ready",
    ]);
    expect(shown(...service, began, moved("enrolling"), sanitized("clean"), moved("active"), ended)).toEqual([
      "Initializing",
      "Ready",
      "InUse",
      "Initializing",
      "Reset",
      "Ready",
    ]);
  });

  it("shows what happened if the host was not cleaned", () => {
    for (const verdict of RECORD_VERDICTS.filter((one) => one !== "clean"))
      expect(shown(...service, began, sanitized(verdict), ended)).toEqual(["Initializing", "Ready", "InUse", "Ready"]);
    expect(shown(...service, began, ended)).not.toContain("Reset");
    expect(shown(...service, began, moved("quarantined"))).toEqual(["Initializing", "Ready", "InUse", "Error"]);
  });

  it("shows a decommissioning, and nothing before the first status", () => {
    expect(shown(...service, moved("draining"), moved("retired"), moved("deleted"))).toEqual([
      "Initializing",
      "Ready",
      "Maintenance",
      "Decommissioned",
    ]);
    expect(shown(began, ended)).toEqual([]);
  });

  it("has a Reset exactly for the clean records, and no status twice in a row", () => {
    const events = fc.array(
      fc.oneof(
        fc.constantFrom(...NODE_STATUSES).map(moved),
        fc.constantFrom(began, ended),
        fc.constantFrom(...RECORD_VERDICTS).map(sanitized),
      ),
      { maxLength: 20 },
    );
    fc.assert(
      fc.property(events, (all) => {
        const statuses = shown(...all);
        const clean = all.filter((one) => one.what === "sanitized" && one.verdict === "clean").length;
        expect(statuses.filter((one) => one === "Reset").length).toBeLessThanOrEqual(clean);
        if (clean > 0) expect(statuses).toContain("Reset");
        expect(statuses.every((one, place) => one !== statuses[place - 1])).toBe(true);
      }),
    );
  });
});
