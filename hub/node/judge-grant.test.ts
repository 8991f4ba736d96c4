import { describe, expect, it } from "vitest";
import { TASK_STATES } from "../../shared/task-state.ts";
import { afterFailedGrant, judgeGrant } from "./judge-grant.ts";

type Grant = NonNullable<Parameters<typeof judgeGrant>[0]>;
const step = (outcome: string, name = "account") => ({
  step: name,
  target: "acme",
  outcome,
  message: "said so",
  evidence: {},
});
const task = (more: Partial<Grant> = {}): Grant => ({
  type: "allocation.grant_user",
  state: "succeeded",
  result: { uid: 30_001, steps: [step("ok"), step("skipped", "sudo")] },
  errorCode: null,
  errorMessage: null,
  ...more,
});

describe("the judgement of a grant", () => {
  it("lets the tenant in if each step is ok or skipped", () => {
    expect(judgeGrant(task())).toMatchObject({ to: "active" });
    expect(judgeGrant(task({ result: { uid: 30_001, steps: [] } }))).toMatchObject({ to: "active" });
  });

  it.each(["failed", "unsupported", "planned"])("fails by a step that is %s, and names the step", (outcome) => {
    const verdict = judgeGrant(task({ result: { uid: 30_001, steps: [step("ok"), step(outcome, "keys")] } }));
    expect(verdict).toMatchObject({ to: "failed", code: `step_${outcome}` });
    expect(verdict.message).toBe(`The step keys for acme is ${outcome}: said so`);
  });

  it.each([
    ["no uid", { uid: null, steps: [step("ok")] }],
    ["no steps", { uid: 1 }],
    ["nothing", null],
    ["an unknown step", { uid: 1, steps: [step("ok", "dance")] }],
  ])("fails by a result with %s, because nothing proves the account", (_what, result) => {
    expect(judgeGrant(task({ result }))).toMatchObject({ to: "failed", code: "result_unreadable" });
  });

  it("fails by a task that is gone, and by every state but success", () => {
    expect(judgeGrant(null)).toMatchObject({ to: "failed", code: "task_missing" });
    for (const state of TASK_STATES.filter((one) => one !== "succeeded"))
      expect(judgeGrant(task({ state }))).toEqual({
        to: "failed",
        code: state,
        message: `The task allocation.grant_user is ${state}`,
      });
  });

  it("repeats the agent's own code and message", () => {
    const told = { state: "failed", errorCode: "account_exists", errorMessage: "acme is uid 1000" } as const;
    expect(judgeGrant(task(told))).toEqual({ to: "failed", code: "account_exists", message: "acme is uid 1000" });
  });
});

it("names a next action for every code, also for one of a newer agent", () => {
  expect(afterFailedGrant("account_exists")).toContain("another login user");
  for (const code of [null, "deadline_passed", "new_code"]) expect(afterFailedGrant(code)).toMatch(/grant|release/);
});
