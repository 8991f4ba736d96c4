import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FAILURE_CLASSES, FAILURES, type Failure, failure, ruleOf } from "../../../shared/failures.ts";
import type { ClaimedWorkflow, CompensationPlan, WorkflowMove } from "../../db/queries/workflows.ts";
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
    const move = advance(row, { kind: "done", message: "did b", patch: { more: 2, known: 2 } }, rules());
    expect(move).toMatchObject({ status: "running", stage: "c", attempt: 1, entersStage: true, wakeInSeconds: 0 });
    expect(move.state).toEqual({ kept: 1, known: 2, more: 2 });
    expect(move.events.map((event) => [event.stage, event.status])).toEqual([
      ["b", "succeeded"],
      ["c", "started"],
    ]);
  });

  it("completes after the last stage, and sleeps for good", () => {
    const row = claimed({ stage: "c" });
    const move = advance(row, { kind: "done", message: "did c" }, rules({ name: "c" }));
    expect(move).toMatchObject({ status: "completed", stage: "c", wakeInSeconds: null, failure: null });
  });

  it("ends as reconciled when an operator had it adopt what it finds", () => {
    const row = claimed({ stage: "c", state: { [ENGINE_FACTS]: { adopting: true } } });
    expect(advance(row, { kind: "skipped", message: "there already" }, rules({ name: "c" })).status).toBe("reconciled");
  });

  it("writes a skipped stage as skipped", () => {
    const move = advance(claimed(), { kind: "skipped", message: "nothing to do", details: { why: "x" } }, rules());
    expect(move.events[0]).toMatchObject({ status: "skipped", message: "nothing to do", details: { why: "x" } });
  });

  it("says why it waits only when the reason is a new one", () => {
    const wait: Outcome<Facts> = { kind: "wait", reason: "MAAS", seconds: 15, on: "maas:x" };
    expect(advance(claimed(), wait, rules()).events).toHaveLength(1);
    const same = advance(claimed({ waitReason: "MAAS", waitOn: "maas:x" }), wait, rules());
    expect(same.events).toEqual([]);
    expect(same).toMatchObject({ waitOn: "maas:x", waitReason: "MAAS", wakeInSeconds: 15, entersStage: false });
  });

  it("looks again soon after it began to listen, since what happened before its commit notified nobody", () => {
    const wait: Outcome<Facts> = { kind: "wait", reason: "MAAS", seconds: 15, on: "maas:x" };
    expect(advance(claimed(), wait, rules()).wakeInSeconds).toBe(1);
    expect(advance(claimed({ waitOn: "maas:other" }), wait, rules()).wakeInSeconds).toBe(1);
  });

  it("keeps a stage's deadline while it waits and never sleeps past it", () => {
    const move = advance(claimed(), { kind: "wait", reason: "x", seconds: 900 }, rules({ deadline: later(30) }));
    expect(move.deadline).toEqual(later(30));
    expect(move.wakeInSeconds).toBeCloseTo(30.01);
  });

  it("goes back to an earlier stage as if it were new", () => {
    const move = advance(claimed({ attempt: 3 }), { kind: "back", to: "a", message: "once more" }, rules());
    expect(move).toMatchObject({ stage: "a", attempt: 1, entersStage: true, deadline: null, status: "running" });
    expect(move.events.map((event) => event.status)).toEqual(["returned", "started"]);
  });

  it("enters the same stage anew, with its attempts and its deadline from the start", () => {
    const row = claimed({ attempt: 3, stageDeadline: later(5) });
    const move = advance(row, { kind: "enter_again", message: "has its place", patch: { placed: true } }, rules());
    expect(move).toMatchObject({ stage: row.stage, attempt: 1, entersStage: true, deadline: null, status: "running" });
    expect(move.state).toMatchObject({ placed: true });
    expect(move.events.map((event) => [event.stage, event.status, event.attempt])).toEqual([
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
  it("retries a bounded class with backoff, keeps the failure in sight and counts the attempt", () => {
    const move = fail(claimed(), { failure: transient, patch: { seen: true } }, rules());
    expect(move).toMatchObject({ status: "running", stage: "b", attempt: 2, failure: transient, entersStage: false });
    expect(move.wakeInSeconds).toBe(1);
    expect(move.state).toMatchObject({ kept: 1, seen: true });
    expect(move.events[0]).toMatchObject({
      status: "retrying",
      attempt: 1,
      details: { error_code: "maas_bad_answer" },
    });
  });

  it("waits at least as long as the upstream asked", () => {
    expect(fail(claimed(), { failure: transient, retryAfterSeconds: 77 }, rules()).wakeInSeconds).toBe(77);
  });

  it("ends as the class says once the attempts are used up", () => {
    const move = fail(claimed({ attempt: 3 }), { failure: transient }, rules());
    expect(move).toMatchObject({ status: "failed_retryable", wakeInSeconds: null, failure: transient });
  });

  it("ends at once when the failure is final, e.g. a time-out", () => {
    expect(fail(claimed(), { failure: transient, final: true }, rules()).status).toBe("failed_retryable");
  });

  it("undoes what was done, last first, when the class compensates, and remembers how it ends", () => {
    const move = fail(claimed({ attempt: 3 }), { failure: broken }, rules());
    expect(move).toMatchObject({ status: "compensating", failure: broken, wakeInSeconds: 0 });
    expect(move.compensation).toEqual(planOf("failure", ["b", "a"], "failed_retryable"));
  });

  it("does not compensate where the stage forbids it", () => {
    const overrides = { deploy_cloud_init_failure: { compensate: false, retry: "never" } } as const;
    expect(fail(claimed(), { failure: broken }, rules({ overrides })).status).toBe("failed_retryable");
  });

  it("property: every class ends in its own status, and no attempt goes past the policy", () => {
    const classes = fc.constantFrom(...FAILURE_CLASSES);
    fc.assert(
      fc.property(classes, fc.integer({ min: 1, max: 10 }), fc.integer({ min: 1, max: 10 }), (cls, attempt, most) => {
        const met = { class: cls, code: FAILURES[cls].codes[0], message: "m", evidence: {} } as Failure;
        const retry = { maxAttempts: most, baseSeconds: 1, maxSeconds: 10 };
        const move = fail(claimed({ attempt }), { failure: met }, rules({ retry }));
        const mayRetry =
          ruleOf(met).retry === "until_deadline" || (FAILURES[cls].retry === "bounded" && attempt < most);
        const end = FAILURES[cls].compensate ? "compensating" : ruleOf(met).endsAs;
        expect(move.status).toBe(mayRetry ? "running" : end);
      }),
    );
  });
});

/** As the move leaves the row, so many seconds later. */
const asLeft = (row: ClaimedWorkflow, move: WorkflowMove, seconds: number): ClaimedWorkflow => ({
  ...row,
  state: move.state,
  attempt: move.attempt,
  stageDeadline: move.deadline,
  waitReason: move.waitReason,
  compensation: move.compensation,
  failureClass: move.failure?.class ?? null,
  failureCode: move.failure?.code ?? null,
  failureMessage: move.failure?.message ?? null,
  now: new Date(row.now.getTime() + seconds * 1000),
});
const rulesAt = (row: ClaimedWorkflow): Rules => rules({ deadline: deadlineForLook(row) ?? later(600) });

describe("a MAAS that is away", () => {
  it("is waited for, says since when, counts no attempt, and is one event however often it is asked", () => {
    const first = fail(claimed({ attempt: 3 }), { failure: away }, rules());
    expect(first).toMatchObject({
      status: "running",
      attempt: 3,
      failure: away,
      wakeInSeconds: 1,
      deadline: later(600),
    });
    expect(first.waitReason).toBe(
      "MAAS to answer again (maas_unreachable): away since 2026-01-02 03:04:05 UTC, next try at 2026-01-02 03:04:06 UTC",
    );
    expect(first.events).toMatchObject([{ status: "waiting", details: { error_code: "maas_unreachable" } }]);
    const row = asLeft(claimed({ attempt: 3 }), first, 100);
    const second = fail(row, { failure: away }, rulesAt(row));
    expect(second).toMatchObject({ attempt: 3, wakeInSeconds: 2, deadline: later(600), events: [] });
    expect(second.waitReason).toContain("away since 2026-01-02 03:04:05 UTC");
    const timedOut = failure("upstream_transient", "maas_timeout", "slow");
    expect(fail(row, { failure: timedOut }, rulesAt(row)).events, "another sign is told").toHaveLength(1);
  });

  it("ends the stage at its own deadline, and is named as what happened", () => {
    const row = asLeft(claimed(), fail(claimed(), { failure: away }, rules()), 600);
    const move = fail(row, { failure: away }, rulesAt(row));
    expect(move).toMatchObject({
      status: "failed_retryable",
      failure: { code: "maas_unreachable" },
      wakeInSeconds: null,
    });
    expect(move.failure?.message).toMatch(
      /^The stage's time is up, and MAAS could not be asked since .* \(600 s\): MAAS cannot/,
    );
    expect(move.failure?.evidence).toMatchObject({ away_since: NOW.toISOString(), away_seconds: 600 });
  });

  it("gives the stage its time back once it answers, and is forgotten", () => {
    const row = asLeft(claimed(), fail(claimed(), { failure: away }, rules()), 590);
    expect(deadlineForLook(row)).toEqual(later(600 + 590));
    const move = advance(row, { kind: "wait", reason: "MAAS to deploy", seconds: 15 }, rulesAt(row));
    expect(move).toMatchObject({ deadline: later(600 + 590), state: { kept: 1 }, failure: null });
    expect(move.state).not.toHaveProperty(ENGINE_FACTS);
    expect(deadlineForLook(asLeft(row, move, 1))).toEqual(later(600 + 590));
  });

  it("leaves the operator's word about the row where it is", () => {
    const adopting = claimed({ state: { [ENGINE_FACTS]: { adopting: true } } });
    const row = asLeft(adopting, fail(adopting, { failure: away }, rules()), 10);
    const move = advance(row, { kind: "wait", reason: "x", seconds: 1 }, rulesAt(row));
    expect(move.state).toEqual({ [ENGINE_FACTS]: { adopting: true } });
  });

  it("property: no look of an absence comes after the deadline, and all of them end at it", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 5_000 }),
        fc.double({ min: 0, max: 0.9999, noNaN: true }),
        (seconds, random) => {
          let row = claimed();
          for (let looks = 0; ; looks += 1) {
            expect(looks).toBeLessThanOrEqual(8 + seconds / 30);
            const move = fail(
              row,
              { failure: away },
              { ...rules({ deadline: deadlineForLook(row) ?? later(seconds) }), random },
            );
            if (move.wakeInSeconds === null) {
              expect(move.status).toBe("failed_retryable");
              expect(row.now.getTime()).toBeGreaterThanOrEqual(later(seconds).getTime());
              return;
            }
            row = asLeft(row, move, move.wakeInSeconds);
            expect(row.now.getTime()).toBeLessThanOrEqual(later(seconds + 0.02).getTime());
          }
        },
      ),
    );
  });
});

describe("what is undone", () => {
  it("undoes all that can be, last first: a row that went back stands before what it did", () => {
    expect(stagesToUndo({ compensable: ["a", "c"] })).toEqual(["c", "a"]);
  });
});

describe("atRest", () => {
  it("keeps the row as it is, its failure and its undoing included", () => {
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

  it("goes on with the stage before", () => {
    const move = compensate(failedRow, plan(), done, rules());
    expect(move).toMatchObject({
      status: "compensating",
      compensation: { stages: ["a"], startedAt: null },
      wakeInSeconds: 0,
    });
    expect(move.events[0]).toMatchObject({ stage: "b", status: "compensated" });
  });

  it("ends with the failure that began it", () => {
    const move = compensate(failedRow, plan({ stages: ["a"] }), { kind: "skipped", message: "nothing" }, rules());
    expect(move).toMatchObject({
      status: "failed_retryable",
      failure: broken,
      compensation: null,
      wakeInSeconds: null,
    });
  });

  it("ends a cancel without a failure", () => {
    const move = compensate(failedRow, plan({ stages: ["a"], cause: "cancel", endsAs: "cancelled" }), done, rules());
    expect(move).toMatchObject({ status: "cancelled", failure: null });
  });

  it("begins again, forgetting all, after restart_clean", () => {
    const restart = plan({ stages: ["a"], cause: "restart", endsAs: "pending", restartAt: "a" });
    const move = compensate(failedRow, restart, done, rules());
    expect(move).toMatchObject({
      status: "pending",
      stage: "a",
      attempt: 1,
      entersStage: true,
      state: {},
      failure: null,
    });
  });

  it("concludes a plan that has nothing left to run", () => {
    expect(compensate(failedRow, plan({ stages: [] }), null, rules()).status).toBe("failed_retryable");
  });

  it("waits, and leaves a person to look when its time is up", () => {
    const wait: Compensation<Facts> = { kind: "wait", reason: "releasing", seconds: 15 };
    expect(compensate(failedRow, plan(), wait, rules())).toMatchObject({ status: "compensating", wakeInSeconds: 15 });
    const late = compensate(failedRow, plan(), wait, rules({ deadline: NOW }));
    expect(late).toMatchObject({ status: "failed_manual_intervention", failure: { code: "deploy_failed" } });
    expect(late.failure?.evidence).toMatchObject({ compensation_stage: "b", compensation_failed: "releasing" });
  });

  it("retries a transient fault and gives up on others", () => {
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

  it("waits for a MAAS that is away, and leaves a person to look when its time is up", () => {
    const first = compensate(failedRow, plan({ attempt: 19 }), { kind: "failed", failure: away }, rules());
    expect(first).toMatchObject({ status: "compensating", compensation: { attempt: 19 }, failure: broken });
    expect(first.waitReason).toContain("MAAS to answer again");
    expect(first.events).toMatchObject([{ stage: "b", status: "waiting" }]);
    const row = { ...asLeft(failedRow, first, 600), status: "compensating" } as const;
    const later100 = { ...row, now: later(100) };
    expect(compensate(later100, plan(), { kind: "failed", failure: away }, rules()).events).toEqual([]);
    const end = compensate(row, plan(), { kind: "failed", failure: away }, rules());
    expect(end).toMatchObject({ status: "failed_manual_intervention", failure: { code: "deploy_failed" } });
    expect(end.failure?.evidence["compensation_failed"]).toMatch(/MAAS could not be asked since .* \(600 s\)/);
  });

  it("ends with how to go on where it is too late to undo, whatever it had failed with before", () => {
    const accepted = failure("state_ambiguity", "uninstall_accepted", "m");
    const cancelling = plan({ cause: "cancel", endsAs: "cancelled" });
    const move = compensate(failedRow, cancelling, { kind: "too_late", failure: accepted }, rules());
    expect(move).toMatchObject({ status: "failed_manual_intervention", failure: accepted, compensation: null });
  });

  it("names the ambiguity when a cancel could not be undone in time and no failure is known", () => {
    const row = claimed({ status: "compensating" });
    const wait: Compensation<Facts> = { kind: "wait", reason: "releasing", seconds: 15 };
    const move = compensate(row, plan({ cause: "cancel", endsAs: "cancelled" }), wait, rules({ deadline: NOW }));
    expect(move.failure).toMatchObject({ class: "state_ambiguity", evidence: { compensation_failed: "releasing" } });
  });
});
