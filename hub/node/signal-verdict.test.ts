import { describe, expect, it } from "vitest";
import type { ConditionStatus, ReportedCondition } from "../../shared/readiness.ts";
import { type HeldReport, judgeSignal } from "./signal-verdict.ts";

const NODE = { generation: 2, begunAt: new Date("2026-01-01T10:00:00Z") };
const reported = (at: string, status: ConditionStatus = "True", type = "fabric.ready"): ReportedCondition => ({
  type,
  status,
  reason: "Said",
  message: "",
  observed_at: at,
});
const NOON = "2026-01-01T12:00:00Z";
const held = (more: Partial<HeldReport> = {}): HeldReport => ({
  type: "fabric.ready",
  status: "True",
  generation: 2,
  observedAt: new Date(NOON),
  stale: false,
  ...more,
});
const outcome = (...given: Parameters<typeof judgeSignal>) => judgeSignal(...given).outcome;

describe("a signal about a node", () => {
  it.each([
    [1, "stale"],
    [2, "applied"],
    [3, "early"],
    [undefined, "applied"],
  ])("that names the generation %s is %s", (generation, expected) => {
    const signal = { conditions: [reported(NOON)], ...(generation === undefined ? {} : { generation }) };
    for (const parked of [false, true]) expect(outcome(signal, NODE, [], parked)).toBe(expected);
  });

  it("without a generation is about the present one only if it was observed in it, or waited for the node", () => {
    const conditions = [reported("2026-01-01T09:59:59Z"), reported("2026-01-01T10:00:00Z", "True", "disk.ok")];
    expect(judgeSignal({ conditions }, NODE, [], false).conditions).toEqual(conditions.slice(1));
    expect(outcome({ conditions: conditions.slice(0, 1) }, NODE, [], false)).toBe("stale");
    expect(outcome({ conditions: conditions.slice(0, 1) }, NODE, [], true)).toBe("applied");
    expect(outcome({ conditions: conditions.slice(0, 1), generation: 2 }, NODE, [], false)).toBe("applied");
  });

  it("that is applied in part says of which conditions it is not, and why", () => {
    const conditions = [
      reported("2026-01-01T09:59:59Z", "True", "a.before"),
      reported("2026-01-01T11:00:00Z", "True", "b.late"),
      reported(NOON, "True", "c.conflicting"),
      reported(NOON, "True", "d.applied"),
    ];
    const known = [held({ type: "b.late" }), held({ type: "c.conflicting", status: "False" })];
    const { outcome: what, conditions: applied, detail } = judgeSignal({ conditions }, NODE, known, false);
    expect([what, applied.map(({ type }) => type)]).toEqual(["applied", ["d.applied"]]);
    expect(detail).toBe(
      "not applied: a.before (observed before the node's generation began), b.late (the node has a newer report), c.conflicting (another report about the same moment says a worse status)",
    );
    expect(judgeSignal({ conditions: conditions.slice(3) }, NODE, known, false).detail).toBeNull();
  });

  const [before, after] = ["2026-01-01T11:59:59Z", "2026-01-01T12:00:01Z"];
  const BY_STATUS: readonly [ConditionStatus, ConditionStatus, string][] = [
    ["True", "True", "applied"],
    ["True", "Unknown", "applied"],
    ["True", "False", "applied"],
    ["Unknown", "True", "conflicting"],
    ["Unknown", "Unknown", "applied"],
    ["Unknown", "False", "applied"],
    ["False", "True", "conflicting"],
    ["False", "Unknown", "conflicting"],
    ["False", "False", "applied"],
  ];
  it.each(BY_STATUS)("beside a held report %s says %s: at one moment %s", (has, says, same) => {
    const at = (time: string, more: Partial<HeldReport> = {}) =>
      outcome({ conditions: [reported(time, says)] }, NODE, [held({ status: has, ...more })], false);
    expect(at(NOON)).toBe(same);
    expect(at(before)).toBe("late");
    expect(at(after)).toBe("applied");
    expect(at(before, { stale: true })).toBe("applied");
    expect(at(before, { generation: 1 })).toBe("applied");
    expect(at(before, { type: "disk.ok" })).toBe("applied");
  });

  it("is applied with those of its conditions that are the newest", () => {
    const conditions = [reported(before), reported(before, "False", "disk.ok")];
    expect(judgeSignal({ conditions }, NODE, [held()], false)).toEqual({
      outcome: "applied",
      conditions: conditions.slice(1),
      detail: "not applied: fabric.ready (the node has a newer report)",
    });
    const both = [held({ status: "False" }), held({ type: "disk.ok" })];
    const mixed = [reported(NOON), reported(before, "True", "disk.ok")];
    expect(outcome({ conditions: mixed }, NODE, both, false)).toBe("conflicting");
  });
});
