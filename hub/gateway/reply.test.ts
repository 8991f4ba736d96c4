import { describe, expect, it } from "vitest";
import { type RunnerError, TASKS, type TaskType } from "../../shared/tasks/index.ts";
import { endingOf, retryDelaySeconds } from "./reply.ts";

describe("the ending of a delivery", () => {
  const types = Object.keys(TASKS) as TaskType[];

  it.each(types)("of %s handles each error of the catalogue as the catalogue says", (type) => {
    for (const [error, handling] of Object.entries(TASKS[type].errors as Record<string, string>)) {
      const ending = endingOf(type, 1, { ok: false, error, message: "m" });
      expect(ending).toMatchObject({ state: handling === "retry" ? "queued" : "failed", errorCode: error });
    }
  });

  it.each(types)("of %s that may have acted is repeated only if repetition is harmless", (type) => {
    const stateAfter = (error: RunnerError) => endingOf(type, 1, { ok: false, error, message: "m" }).state;
    expect(stateAfter("not_started")).toBe("queued");
    expect(stateAfter("cancelled")).toBe("cancelled");
    for (const error of ["interrupted", "handler_crashed"] as const)
      expect(stateAfter(error)).toBe(TASKS[type].destructive ? "failed" : "queued");
  });

  it.each(types)("of %s is no success without a result that matches the type", (type) => {
    expect(endingOf(type, 1, { ok: true, result: { surprise: 1 } })).toMatchObject({ errorCode: "invalid_result" });
  });

  it("is never a retry for an error name that only an object's prototype has", () => {
    for (const error of ["constructor", "toString", "__proto__", "hasOwnProperty"])
      expect(endingOf("node.drain", 1, { ok: false, error, message: "m" })).toMatchObject({ state: "failed" });
  });

  it("contains nothing that looks like a credential, whatever the agent sent", () => {
    const message = "curl: (22) Authorization: Bearer mN3kQ7xZt0aB4cD5eF6gH7 was refused";
    const ending = endingOf("node.drain", 1, { ok: false, error: "mark_failed", message });
    expect(ending).toMatchObject({ errorMessage: "curl: (22) Authorization: Bearer [redacted] was refused" });
  });

  it("of a type that the hub does not know is a failure", () => {
    expect(endingOf("node.shell", 1, { ok: true, result: null })).toMatchObject({ errorCode: "unsupported_task" });
  });
});

describe("the pause before the next delivery", () => {
  it("doubles up to five minutes", () => {
    expect([1, 2, 3, 8, 9, 100].map(retryDelaySeconds)).toEqual([2, 4, 8, 256, 300, 300]);
  });
});
