import { describe, expect, it } from "vitest";
import { HEALTH_TEMPLATES } from "../../shared/health-report.ts";
import {
  ENDED_STATES,
  isOnlineUnderWay,
  REPAIR_MODES,
  REPAIR_STATE_NAMES,
  type RepairMode,
  type RepairState,
} from "../../shared/repair.ts";
import {
  afterMove,
  isRequestOpen,
  MARK_TEMPLATES,
  marksOf,
  REPAIR_MOVES,
  type RepairMove,
  verbsFrom,
} from "./case-moves.ts";

/** Each move by itself: from which states of which mode it leads where. What is not named is refused. */
const LEADS: Readonly<Record<RepairMove, Readonly<Record<RepairMode, string>>>> = {
  report_again: {
    full: "reported>reported requested>requested claimed>claimed repaired>failed failed>failed escalated>escalated",
    online: "",
  },
  request: {
    full: "reported>requested failed>requested escalated>requested",
    online: "failed>requested escalated>requested",
  },
  withdraw: { full: "requested>reported", online: "requested>failed" },
  claim: { full: "requested>claimed", online: "requested>claimed" },
  complete: {
    full: "reported>repaired claimed>repaired failed>repaired escalated>repaired",
    online: "claimed>repaired failed>repaired escalated>repaired",
  },
  fail: { full: "claimed>failed", online: "claimed>failed" },
  lapse: { full: "claimed>failed", online: "requested>failed claimed>failed repaired>failed" },
  hand_over: { full: "claimed>escalated", online: "claimed>escalated" },
  escalate: {
    full: "reported>escalated requested>escalated claimed>escalated repaired>escalated failed>escalated",
    online: "requested>escalated claimed>escalated repaired>escalated failed>escalated",
  },
  refute: { full: "repaired>failed", online: "repaired>failed" },
  become_full: { full: "", online: "failed>reported escalated>escalated" },
  close: { full: "repaired>closed", online: "repaired>closed" },
  abandon: {
    full: "reported>abandoned requested>abandoned claimed>abandoned repaired>abandoned failed>abandoned escalated>abandoned",
    online: "requested>abandoned claimed>abandoned repaired>abandoned failed>abandoned escalated>abandoned",
  },
};

describe("the moves of a repair case", () => {
  it("are these over the whole domain of modes, states and moves", () => {
    let looked = 0;
    for (const mode of REPAIR_MODES)
      for (const move of REPAIR_MOVES) {
        const found = REPAIR_STATE_NAMES.flatMap((from) => {
          looked += 1;
          const to = afterMove(mode, from, move);
          return to === null ? [] : [`${from}>${to}`];
        });
        expect(found.join(" "), `${mode} ${move}`).toBe(LEADS[move][mode]);
      }
    expect(looked).toBe(2 * 8 * 13);
  });

  it("reach the end `closed` only from `repaired`, and leave no end", () => {
    for (const mode of REPAIR_MODES)
      for (const move of REPAIR_MOVES) {
        for (const end of ENDED_STATES) expect(afterMove(mode, end, move)).toBeNull();
        for (const from of REPAIR_STATE_NAMES)
          if (afterMove(mode, from, move) === "closed") expect([from, move]).toEqual(["repaired", "close"]);
      }
  });

  it("mark the node until the case is closed, so that every other state keeps new tenants off", () => {
    const barring = (mode: RepairMode, state: RepairState) =>
      marksOf(mode, state)?.map((template) => HEALTH_TEMPLATES[template].alert.classifications as readonly string[]);
    for (const mode of REPAIR_MODES)
      for (const state of REPAIR_STATE_NAMES) {
        const marks = barring(mode, state);
        if (state === "abandoned") expect(marks).toBeUndefined();
        else if (state === "closed") expect(marks).toEqual([]);
        else
          expect(
            marks?.every((classes) => classes.includes("PreventAllocations")),
            state,
          ).toBe(true);
        const keepsTenant = marks?.some((classes) => classes.includes("PreventInstanceDeletion")) ?? false;
        expect(keepsTenant, `${mode} ${state}`).toBe(isOnlineUnderWay(mode, state));
        expect(marksOf(mode, state)?.includes("OutForRepair") ?? false).toBe(state === "escalated");
        expect(marksOf(mode, state)?.includes("RequestRepair") ?? false).toBe(mode === "full" && isRequestOpen(state));
      }
    const used = new Set(REPAIR_MODES.flatMap((mode) => REPAIR_STATE_NAMES.flatMap((one) => marksOf(mode, one) ?? [])));
    expect([...used].sort()).toEqual([...MARK_TEMPLATES].sort());
  });

  it("name a verb in every state that waits for a person", () => {
    for (const mode of REPAIR_MODES)
      for (const state of REPAIR_STATE_NAMES) {
        const ended = state === "closed" || state === "abandoned" || (mode === "online" && state === "reported");
        expect(verbsFrom(mode, state).length > 0, `${mode} ${state}`).toBe(!ended);
      }
    expect(verbsFrom("full", "repaired")).toEqual(["validate-repair", "escalate-repair", "close-repair"]);
    expect(verbsFrom("full", "failed")).toEqual(["request-repair", "report-repair", "escalate-repair"]);
  });
});
