import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EXTERNAL_STATES, type ExternalState, STATUS_OF_STATE } from "../../../shared/external-attempt.ts";
import {
  ATTEMPT_INPUTS,
  ATTEMPT_TABLE,
  type AttemptInput,
  type AttemptReport,
  effectOfReport,
  holdsNode,
  isLeased,
  NEXT_ACTION,
} from "./attempt-table.ts";

/** One row for each state. A new state, or the effect of an input: `=` repeated, `.` ignored, `!` refused. The columns are `ATTEMPT_INPUTS`. */
const TABLE = `
begun       in_progress verifying failed    abandoned lost late       .
in_progress in_progress verifying failed    abandoned lost late       .
verifying   !           =         failed    abandoned .    unverified completed
completed   !           =         !         !         .    .          .
failed      !           !         =         abandoned .    .          .
lost        in_progress verifying failed    abandoned .    late       .
late        !           verifying failed    abandoned .    .          .
unverified  !           =         failed    abandoned .    .          completed
abandoned   !           !         !         =         .    .          .
`;
const ROWS = TABLE.trim()
  .split("\n")
  .map((line) => line.split(/\s+/));

const sign = (state: ExternalState, input: AttemptInput): string => {
  const effect = ATTEMPT_TABLE[state][input];
  return effect.kind === "moved" ? effect.to : { repeated: "=", ignored: ".", refused: "!" }[effect.kind];
};
const states = fc.constantFrom(...EXTERNAL_STATES);
const next = (state: ExternalState, input: AttemptInput): ExternalState => {
  const effect = ATTEMPT_TABLE[state][input];
  return effect.kind === "moved" ? effect.to : state;
};

describe("an attempt to provision a host externally", () => {
  it("moves by its table", () => {
    expect(EXTERNAL_STATES.map((state) => [state, ...ATTEMPT_INPUTS.map((input) => sign(state, input))])).toEqual(ROWS);
  });

  it("is repeated or refused, and never moved on, by a report that comes twice", () => {
    for (const state of EXTERNAL_STATES)
      for (const input of ATTEMPT_INPUTS) expect(next(next(state, input), input)).toBe(next(state, input));
  });

  it("becomes completed only by a completion and readiness, in whatever order the inputs come", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...ATTEMPT_INPUTS), { maxLength: 12 }), (inputs) => {
        const end = inputs.reduce(next, "begun" as ExternalState);
        const completed = inputs.indexOf("complete");
        const isReadyAfter = completed >= 0 && inputs.includes("ready", completed);
        return end !== "completed" || isReadyAfter;
      }),
    );
  });

  it("waits in no state without an end: time alone ends each wait in failed_retryable", () => {
    for (const state of EXTERNAL_STATES) {
      const end = (["lease_passed", "deadline_passed"] as const).reduce(next, state);
      expect(holdsNode(end), state).toBe(false);
      if (holdsNode(state)) expect(STATUS_OF_STATE[end]).toBe("failed_retryable");
      if (isLeased(state)) expect(STATUS_OF_STATE[next(state, "lease_passed")]).toBe("failed_retryable");
    }
  });

  it("tells what to do in each state that somebody must end", () => {
    for (const state of EXTERNAL_STATES)
      if (["failed_retryable", "abandoned", "verifying"].includes(STATUS_OF_STATE[state]))
        expect(NEXT_ACTION[state]).toMatch(/^[A-Z].{20}/);
  });
});

describe("a report", () => {
  const reports: readonly AttemptReport[] = ["progress", "complete", "fail", "abandon"];

  it("counts only from the holder, except that anybody with the right abandons", () => {
    for (const state of EXTERNAL_STATES)
      for (const report of reports) {
        const mine = effectOfReport(state, report, { isHolder: true, isSuperseded: false });
        const theirs = effectOfReport(state, report, { isHolder: false, isSuperseded: false });
        expect(mine).toBe(ATTEMPT_TABLE[state][report]);
        expect(theirs).toEqual(report === "abandon" ? mine : { kind: "foreign" });
      }
  });

  it("about a replaced attempt is kept, and never applied", () => {
    fc.assert(
      fc.property(states, fc.constantFrom(...reports), (state, report) => {
        expect(effectOfReport(state, report, { isHolder: true, isSuperseded: true })).toEqual({ kind: "kept" });
      }),
    );
  });
});
