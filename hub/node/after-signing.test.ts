import { describe, expect, it } from "vitest";
import { TASK_STATES } from "../../shared/task-state.ts";
import { RUNNER_ERRORS } from "../../shared/tasks/index.ts";
import { signRecord } from "../../shared/tasks/sign-record.ts";
import { afterSigning } from "./after-signing.ts";

const signed = {
  signature: "A".repeat(96),
  algorithm: "ecdsa-p256-sha256",
  certificate_serial: "1f",
  certificate_pem: "pem",
  unknown_tasks: [],
};
const failed = (errorCode: string | null, state: (typeof TASK_STATES)[number] = "failed") =>
  afterSigning({ state, result: null, errorCode, errorMessage: "why" });

describe("after the task that signs a record", () => {
  it("nothing follows while the task is not over, and something follows from each end", () => {
    const open = TASK_STATES.filter((state) => failed(null, state) === null);
    expect(open.toSorted()).toEqual(["cancelling", "offered", "queued", "running"]);
  });

  it("the record is stored with the signature", () => {
    const task = { state: "succeeded", result: signed, errorCode: null, errorMessage: null } as const;
    expect(afterSigning(task)).toEqual({ next: "store", signed });
  });

  it("an answer that is no signature never counts as one", () => {
    for (const result of [null, {}, { ...signed, signature: "short" }, { ...signed, algorithm: "none" }])
      expect(afterSigning({ state: "succeeded", result, errorCode: null, errorMessage: null })).toMatchObject({
        next: "prepare_unsigned",
      });
  });

  it("only an agent with another certificate or boot is asked again", () => {
    const codes = [...Object.keys(signRecord.errors), ...Object.keys(RUNNER_ERRORS), "deadline_passed", "lease_lapsed"];
    const again = codes.filter((code) => failed(code)?.next === "prepare_again");
    expect(again).toEqual(["agent_differs"]);
  });

  it("an unsigned record gets the reason, which fits into the record", () => {
    expect(failed("result_differs")).toEqual({ next: "prepare_unsigned", reason: "result_differs: why" });
    expect(failed(null, "expired")).toEqual({ next: "prepare_unsigned", reason: "expired: why" });
    const long = afterSigning({
      state: "failed",
      result: null,
      errorCode: "malformed",
      errorMessage: "x".repeat(4_000),
    });
    expect(long).toMatchObject({ reason: expect.stringMatching(/^malformed: x{245}$/) });
  });
});
