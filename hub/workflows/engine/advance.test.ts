import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FAILURE_CLASSES, FAILURES, type Failure, failure, ruleOf } from "../../../shared/failures.ts";
import type { ClaimedWorkflow, CompensationPlan, WorkflowTransition } from "../../db/queries/workflows.ts";
import { advance, atRest, compensate, deadlineForLook, fail, planOf, type Rules, stagesToUndo } from "./advance.ts";
import { claimed, later, NOW, rules } from "./rows.fixture.ts";
import type { Compensation, Outcome } from "./stage.ts";
import { ENGINE_FACTS, type Facts } from "./workflow.ts";

const transient = failure("upstream_transient", "maas_bad_answer", "MAAS's answer cannot be used");
const away = failure("upstream_transient", "maas_unreachable", "MAAS cannot be reached");
const broken = failure("deploy_cloud_init_failure", "deploy_failed", "the deploy failed", {
  last: "Failed deployment",
});

describe("advance", () => {
  it("enters the next stage, due at once, with the patch merged", () => {
    const row = claimed({ attempt: 3, state: { kept: 1, known: 1 } });
    const next = advance(row, { kind: "done", message: "did b", patch: { more: 2, known: 2 } }, rules());
    expect(next).toMatchObject({
      status: "running",
      stage: "c",
      attempt: 1,
      entersStage: true,
      wakeInSeconds: 0,
    });
    expect(next.state).toEqual({ kept: 1, known: 2, more: 2 });
    expect(next.events.map((event) => [event.stage, event.status])).toEqual([
      ["b", "succeeded"],
      ["c", "started"],
    ]);
  });

  it("completes after the last stage, shows what the stage leaves, and the row is never due again", () => {
    const leaves = { message: "one login is left", nextAction: "delete it", evidence: {} };
    const next = advance(claimed({ stage: "c" }), { kind: "done", message: "did c", leaves }, rules({ name: "c" }));
    expect(next).toMatchObject({ status: "completed", stage: "c", wakeInSeconds: null, failure: null, leaves });
  });

  it("ends as reconciled after an operator's `adopt`", () => {
    const row = claimed({ stage: "c", state: { [ENGINE_FACTS]: { adopting: true } } });
    expect(advance(row, { kind: "skipped", message: "there already" }, rules({ name: "c" })).status).toBe("reconciled");
  });

  it("records a skipped stage as skipped", () => {
    const next = advance(claimed(), { kind: "skipped", message: "nothing to do", details: { why: "x" } }, rules());
    expect(next.events[0]).toMatchObject({ status: "skipped", message: "nothing to do", details: { why: "x" } });
  });

  it("records an event for a wait only if its reason is new", () => {
    const wait: Outcome<Facts> = { kind: "wait", reason: "MAAS", seconds: 15, on: "maas:x" };
    expect(advance(claimed(), wait, rules()).events).toHaveLength(1);
    const same = advance(claimed({ waitReason: "MAAS", waitOn: "maas:x" }), wait, rules());
    expect(same.events).toEqual([]);
    expect(same).toMatchObject({ waitOn: "maas:x", waitReason: "MAAS", wakeInSeconds: 15, entersStage: false });
  });

  it("runs the stage again soon after it began to wait on a key, because earlier changes sent no notification", () => {
    const wait: Outcome<Facts> = { kind: "wait", reason: "MAAS", seconds: 15, on: "maas:x" };
    expect(advance(claimed(), wait, rules()).wakeInSeconds).toBe(1);
    expect(advance(claimed({ waitOn: "maas:other" }), wait, rules()).wakeInSeconds).toBe(1);
  });

  it("keeps a stage's deadline during a wait, and makes the row due at the deadline", () => {
    const next = advance(claimed(), { kind: "wait", reason: "x", seconds: 900 }, rules({ deadline: later(30) }));
    expect(next.deadline).toEqual(later(30));
    expect(next.wakeInSeconds).toBeCloseTo(30.01);
  });

  it("enters an earlier stage with new attempts and a new deadline after `back`", () => {
    const next = advance(claimed({ attempt: 3 }), { kind: "back", to: "a", message: "once more" }, rules());
    expect(next).toMatchObject({ stage: "a", attempt: 1, entersStage: true, deadline: null, status: "running" });
    expect(next.events.map((event) => event.status)).toEqual(["returned", "started"]);
  });

  it("enters the same stage with new attempts and a new deadline after `enter_again`", () => {
    const row = claimed({ attempt: 3, stageDeadline: later(5) });
    const next = advance(row, { kind: "enter_again", message: "has its place", patch: { placed: true } }, rules());
    expect(next).toMatchObject({
      stage: row.stage,
      attempt: 1,
      entersStage: true,
      deadline: null,
      status: "running",
    });
    expect(next.state).toMatchObject({ placed: true });
    expect(next.events.map((event) => [event.stage, event.status, event.attempt])).toEqual([
      [row.stage, "returned", 3],
      [row.stage, "started", 1],
    ]);
  });

  it("property: a wait is never negative, never longer than asked and never past the deadline", () => {
    fc.assert(
      fc.property(
        fc.float({ min: 0, max: 1e6, noNaN: true }),
        fc.integer({ min: -100, max: 10_000 }),
        fc.boolean(),
        (seconds, left, listens) => {
          const wait: Outcome<Facts> = { kind: "wait", reason: "x", seconds, ...(listens ? { on: "k" } : {}) };
          const { wakeInSeconds } = advance(claimed(), wait, rules({ deadline: later(left) }));
          expect(wakeInSeconds).toBeGreaterThanOrEqual(0);
          expect(wakeInSeconds).toBeLessThanOrEqual(Math.max(0, Math.min(seconds, left + 0.01)) + 1e-9);
        },
      ),
    );
  });
});

describe("fail", () => {
  it("retries a bounded class with backoff, shows the failure and counts the attempt", () => {
    const next = fail(claimed(), { failure: transient, patch: { seen: true } }, rules());
    expect(next).toMatchObject({
      status: "running",
      stage: "b",
      attempt: 2,
      failure: transient,
      entersStage: false,
    });
    expect(next.wakeInSeconds).toBe(1);
    expect(next.state).toMatchObject({ kept: 1, seen: true });
    expect(next.events[0]).toMatchObject({
      status: "retrying",
      attempt: 1,
      details: { error_code: "maas_bad_answer" },
    });
  });

  it("waits at least for the upstream's Retry-After", () => {
    expect(fail(claimed(), { failure: transient, retryAfterSeconds: 77 }, rules()).wakeInSeconds).toBe(77);
  });

  it("ends with the status of the failure class after the last attempt", () => {
    const next = fail(claimed({ attempt: 3 }), { failure: transient }, rules());
    expect(next).toMatchObject({ status: "failed_retryable", wakeInSeconds: null, failure: transient });
  });

  it("ends at once after a final failure, e.g. a timeout", () => {
    expect(fail(claimed(), { failure: transient, final: true }, rules()).status).toBe("failed_retryable");
  });

  it("starts the compensation, last stage first, if the failure class compensates, and stores the final status", () => {
    const next = fail(claimed({ attempt: 3 }), { failure: broken }, rules());
    expect(next).toMatchObject({ status: "compensating", failure: broken, wakeInSeconds: 0 });
    expect(next.compensation).toEqual(planOf("failure", ["b", "a"], "failed_retryable"));
  });

  it("does not compensate if the stage forbids it", () => {
    const overrides = { deploy_cloud_init_failure: { compensate: false, retry: "never" } } as const;
    expect(fail(claimed(), { failure: broken }, rules({ overrides })).status).toBe("failed_retryable");
  });

  it("property: every class ends in its own status, and no attempt exceeds the policy", () => {
    const classes = fc.constantFrom(...FAILURE_CLASSES);
    fc.assert(
      fc.property(classes, fc.integer({ min: 1, max: 10 }), fc.integer({ min: 1, max: 10 }), (cls, attempt, most) => {
        const met = { class: cls, code: FAILURES[cls].codes[0], message: "m", evidence: {} } as Failure;
        const retry = { maxAttempts: most, baseSeconds: 1, maxSeconds: 10 };
        const next = fail(claimed({ attempt }), { failure: met }, rules({ retry }));
        const mayRetry =
          ruleOf(met).retry === "until_deadline" || (FAILURES[cls].retry === "bounded" && attempt < most);
        const end = FAILURES[cls].compensate ? "compensating" : ruleOf(met).endsAs;
        expect(next.status).toBe(mayRetry ? "running" : end);
      }),
    );
  });
});

const asLeft = (row: ClaimedWorkflow, next: WorkflowTransition, seconds: number): ClaimedWorkflow => ({
  ...row,
  state: next.state,
  attempt: next.attempt,
  stageDeadline: next.deadline,
  waitReason: next.waitReason,
  compensation: next.compensation,
  failureClass: next.failure?.class ?? null,
  failureCode: next.failure?.code ?? null,
  failureMessage: next.failure?.message ?? null,
  now: new Date(row.now.getTime() + seconds * 1000),
});
const rulesAt = (row: ClaimedWorkflow): Rules => rules({ deadline: deadlineForLook(row) ?? later(600) });

describe("while MAAS is unavailable", () => {
  it("the row waits, says since when, counts no attempt and records one event for many runs", () => {
    const first = fail(claimed({ attempt: 3 }), { failure: away }, rules());
    expect(first).toMatchObject({
      status: "running",
      attempt: 3,
      failure: away,
      wakeInSeconds: 1,
      deadline: later(600),
    });
    expect(first.waitReason).toBe(
      "MAAS to answer again (maas_unreachable): unavailable since 2026-01-02 03:04:05 UTC, next try at 2026-01-02 03:04:06 UTC",
    );
    expect(first.events).toMatchObject([{ status: "waiting", details: { error_code: "maas_unreachable" } }]);
    const row = asLeft(claimed({ attempt: 3 }), first, 100);
    const second = fail(row, { failure: away }, rulesAt(row));
    expect(second).toMatchObject({ attempt: 3, wakeInSeconds: 2, deadline: later(600), events: [] });
    expect(second.waitReason).toContain("unavailable since 2026-01-02 03:04:05 UTC");
    const timedOut = failure("upstream_transient", "maas_timeout", "slow");
    expect(fail(row, { failure: timedOut }, rulesAt(row)).events, "another sign is told").toHaveLength(1);
  });

  it("the stage fails at its own deadline, with the absence as its failure", () => {
    const row = asLeft(claimed(), fail(claimed(), { failure: away }, rules()), 600);
    const next = fail(row, { failure: away }, rulesAt(row));
    expect(next).toMatchObject({
      status: "failed_retryable",
      failure: { code: "maas_unreachable" },
      wakeInSeconds: null,
    });
    expect(next.failure?.message).toMatch(
      /^MAAS did not answer from .* until the stage's deadline \(600 s\): MAAS cannot/,
    );
    expect(next.failure?.evidence).toMatchObject({ away_since: NOW.toISOString(), away_seconds: 600 });
  });

  it("the stage's deadline is extended by the time of the absence once MAAS answers", () => {
    const row = asLeft(claimed(), fail(claimed(), { failure: away }, rules()), 590);
    expect(deadlineForLook(row)).toEqual(later(600 + 590));
    const next = advance(row, { kind: "wait", reason: "MAAS to deploy", seconds: 15 }, rulesAt(row));
    expect(next).toMatchObject({ deadline: later(600 + 590), state: { kept: 1 }, failure: null });
    expect(next.state).not.toHaveProperty(ENGINE_FACTS);
    expect(deadlineForLook(asLeft(row, next, 1))).toEqual(later(600 + 590));
  });

  it("an operator's `adopt` on the row is kept", () => {
    const adopting = claimed({ state: { [ENGINE_FACTS]: { adopting: true } } });
    const row = asLeft(adopting, fail(adopting, { failure: away }, rules()), 10);
    const next = advance(row, { kind: "wait", reason: "x", seconds: 1 }, rulesAt(row));
    expect(next.state).toEqual({ [ENGINE_FACTS]: { adopting: true } });
  });

  it("property: the last run during an absence is at the deadline", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 5_000 }),
        fc.double({ min: 0, max: 0.9999, noNaN: true }),
        (seconds, random) => {
          let row = claimed();
          for (let looks = 0; ; looks += 1) {
            expect(looks).toBeLessThanOrEqual(8 + seconds / 30);
            const next = fail(
              row,
              { failure: away },
              { ...rules({ deadline: deadlineForLook(row) ?? later(seconds) }), random },
            );
            if (next.wakeInSeconds === null) {
              expect(next.status).toBe("failed_retryable");
              expect(row.now.getTime()).toBeGreaterThanOrEqual(later(seconds).getTime());
              return;
            }
            row = asLeft(row, next, next.wakeInSeconds);
            expect(row.now.getTime()).toBeLessThanOrEqual(later(seconds + 0.02).getTime());
          }
        },
      ),
    );
  });
});

describe("stagesToUndo", () => {
  it("lists all stages with a compensation, last stage first", () => {
    expect(stagesToUndo({ compensable: ["a", "c"] })).toEqual(["c", "a"]);
  });
});

describe("atRest", () => {
  it("keeps the row as it is, including its failure and its compensation", () => {
    const plan = planOf("failure", ["a"], "failed_retryable");
    const row = claimed({
      status: "compensating",
      compensation: plan,
      failureClass: broken.class,
      failureCode: broken.code,
    });
    expect(atRest(row, "b")).toMatchObject({
      status: "compensating",
      stage: "b",
      state: { kept: 1 },
      compensation: plan,
      failure: { code: broken.code },
      entersStage: false,
      events: [],
    });
  });
});

describe("compensate", () => {
  const plan = (fields: Partial<CompensationPlan> = {}): CompensationPlan => ({
    ...planOf("failure", ["b", "a"], "failed_retryable"),
    startedAt: NOW.toISOString(),
    ...fields,
  });
  const failedRow = claimed({
    status: "compensating",
    failureClass: broken.class,
    failureCode: broken.code,
    failureMessage: broken.message,
    evidence: broken.evidence,
  });
  const done: Compensation<Facts> = { kind: "done", message: "released" };

  it("continues with the stage before", () => {
    const next = compensate(failedRow, plan(), done, rules());
    expect(next).toMatchObject({
      status: "compensating",
      compensation: { stages: ["a"], startedAt: null },
      wakeInSeconds: 0,
    });
    expect(next.events[0]).toMatchObject({ stage: "b", status: "compensated" });
  });

  it("ends with the failure that started the compensation", () => {
    const next = compensate(failedRow, plan({ stages: ["a"] }), { kind: "skipped", message: "nothing" }, rules());
    expect(next).toMatchObject({
      status: "failed_retryable",
      failure: broken,
      compensation: null,
      wakeInSeconds: null,
    });
  });

  it("ends a cancel without a failure", () => {
    const next = compensate(failedRow, plan({ stages: ["a"], cause: "cancel", endsAs: "cancelled" }), done, rules());
    expect(next).toMatchObject({ status: "cancelled", failure: null });
  });

  it("begins again with an empty state after restart_clean", () => {
    const restart = plan({ stages: ["a"], cause: "restart", endsAs: "pending", restartAt: "a" });
    const next = compensate(failedRow, restart, done, rules());
    expect(next).toMatchObject({
      status: "pending",
      stage: "a",
      attempt: 1,
      entersStage: true,
      state: {},
      failure: null,
    });
  });

  it("ends a plan that has no stage left", () => {
    expect(compensate(failedRow, plan({ stages: [] }), null, rules()).status).toBe("failed_retryable");
  });

  it("waits, and asks for a person after the deadline", () => {
    const wait: Compensation<Facts> = { kind: "wait", reason: "releasing", seconds: 15 };
    expect(compensate(failedRow, plan(), wait, rules())).toMatchObject({ status: "compensating", wakeInSeconds: 15 });
    const late = compensate(failedRow, plan(), wait, rules({ deadline: NOW }));
    expect(late).toMatchObject({ status: "failed_manual_intervention", failure: { code: "deploy_failed" } });
    expect(late.failure?.evidence).toMatchObject({ compensation_stage: "b", compensation_failed: "releasing" });
  });

  it("retries a transient fault, and gives up after the last attempt", () => {
    const again = compensate(failedRow, plan(), { kind: "failed", failure: transient }, rules());
    expect(again).toMatchObject({ status: "compensating", compensation: { attempt: 2 }, wakeInSeconds: 1 });
    const given = compensate(
      claimed({ status: "compensating" }),
      plan({ attempt: 3 }),
      { kind: "failed", failure: transient },
      rules(),
    );
    expect(given).toMatchObject({ status: "failed_manual_intervention", failure: { code: "maas_bad_answer" } });
  });

  it("waits while MAAS is unavailable, and asks for a person after the deadline", () => {
    const first = compensate(failedRow, plan({ attempt: 19 }), { kind: "failed", failure: away }, rules());
    expect(first).toMatchObject({ status: "compensating", compensation: { attempt: 19 }, failure: broken });
    expect(first.waitReason).toContain("MAAS to answer again");
    expect(first.events).toMatchObject([{ stage: "b", status: "waiting" }]);
    const row = { ...asLeft(failedRow, first, 600), status: "compensating" } as const;
    const later100 = { ...row, now: later(100) };
    expect(compensate(later100, plan(), { kind: "failed", failure: away }, rules()).events).toEqual([]);
    const end = compensate(row, plan(), { kind: "failed", failure: away }, rules());
    expect(end).toMatchObject({ status: "failed_manual_intervention", failure: { code: "deploy_failed" } });
    expect(end.failure?.evidence["compensation_failed"]).toMatch(/MAAS did not answer from .* \(600 s\)/);
  });

  it("ends with the failure of `too_late`, whatever the earlier failure was", () => {
    const accepted = failure("state_ambiguity", "uninstall_accepted", "m");
    const cancelling = plan({ cause: "cancel", endsAs: "cancelled" });
    const next = compensate(failedRow, cancelling, { kind: "too_late", failure: accepted }, rules());
    expect(next).toMatchObject({ status: "failed_manual_intervention", failure: accepted, compensation: null });
  });

  it("fails as an ambiguous state if a cancel cannot be compensated in time and the row has no failure", () => {
    const row = claimed({ status: "compensating" });
    const wait: Compensation<Facts> = { kind: "wait", reason: "releasing", seconds: 15 };
    const next = compensate(row, plan({ cause: "cancel", endsAs: "cancelled" }), wait, rules({ deadline: NOW }));
    expect(next.failure).toMatchObject({
      class: "state_ambiguity",
      evidence: { compensation_failed: "releasing" },
    });
  });
});
