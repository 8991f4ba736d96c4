import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { UsualDuration } from "../../../shared/api/operation-timeline.ts";
import {
  ONBOARDING_STAGES,
  STAGE_EVENT_STATUSES,
  STAGES_OF_MODE,
  type StageEventStatus,
  WORKFLOW_STATUSES,
  type WorkflowStatus,
} from "../../../shared/workflow-status.ts";
import { type PastEvent, segmentsOf } from "./segments.ts";
import { type TimelineFacts, timelineOf } from "./timeline.ts";

const at = (second: number): Date => new Date(Date.UTC(2026, 0, 1) + second * 1000);
const event = (second: number, stage: string, status: StageEventStatus, message: string | null = null): PastEvent => ({
  at: at(second),
  stage,
  status,
  message,
  attempt: 1,
});
const secondOf = (date: Date | null): number | null =>
  date === null ? null : (date.getTime() - at(0).getTime()) / 1000;

/** Each segment as "stage state from-to (reason)". */
const told = (events: readonly PastEvent[], status: WorkflowStatus, undoing: string | null = null): string[] =>
  segmentsOf(events, { status, undoing }).map(
    ({ stage, state, began, ended, reason }) =>
      `${stage} ${state} ${secondOf(began)}-${secondOf(ended) ?? ""}${reason === null ? "" : ` (${reason})`}`,
  );

describe("the segments of an operation", () => {
  it("are the work, the waits and the retries of each stage", () => {
    const events = [
      event(0, "a", "started", "Admitted"),
      event(2, "a", "waiting", "MAAS commissions"),
      event(5, "a", "succeeded", "done"),
      event(5, "b", "started", "Started"),
      event(7, "b", "retrying", "MAAS answered 503"),
      event(9, "b", "waiting", "MAAS deploys"),
    ];
    expect(told(events, "running")).toEqual([
      "a working 0-2",
      "a waiting 2-5 (MAAS commissions)",
      "b working 5-7",
      "b retrying 7-9 (MAAS answered 503)",
      "b waiting 9- (MAAS deploys)",
    ]);
    expect(told([...events, event(10, "b", "skipped")], "completed")).toHaveLength(5);
  });

  it("show how long a person was awaited, and the wait for the turn after a verb", () => {
    const events = [
      event(0, "a", "started"),
      event(3, "a", "failed", "no BMC"),
      event(60, "a", "returned", "retry by ada: cable"),
      event(64, "a", "started", "Admitted"),
    ];
    expect(told(events.slice(0, 2), "failed_retryable")).toEqual(["a working 0-3", "a stopped 3- (no BMC)"]);
    expect(told(events.slice(0, 3), "pending").slice(1)).toEqual([
      "a stopped 3-60 (no BMC)",
      "a waiting 60- (Waits for its turn)",
    ]);
    expect(told(events, "running").slice(1)).toEqual([
      "a stopped 3-60 (no BMC)",
      "a waiting 60-64 (Waits for its turn)",
      "a working 64-",
    ]);
  });

  it("show how each stage is undone after a failure, and then what a person is awaited for", () => {
    const events = [
      event(0, "a", "started"),
      event(1, "a", "succeeded"),
      event(1, "b", "started"),
      event(4, "b", "failed", "deploy failed"),
      event(5, "b", "waiting", "MAAS releases"),
      event(8, "b", "compensated"),
      event(9, "a", "skipped"),
    ];
    expect(told(events.slice(0, 4), "compensating", "b").slice(2)).toEqual(["b undoing 4-"]);
    expect(told(events.slice(0, 5), "compensating", "b").slice(2)).toEqual([
      "b undoing 4-5",
      "b undoing 5- (MAAS releases)",
    ]);
    expect(told(events.slice(0, 6), "compensating", "a").at(-1)).toBe("a undoing 8-");
    expect(told(events, "failed_retryable").slice(2)).toEqual([
      "b undoing 4-5",
      "b undoing 5-8 (MAAS releases)",
      "a undoing 8-9",
      "a stopped 9-",
    ]);
    const stuck = [...events.slice(0, 6), event(12, "a", "failed", "Could not be undone")];
    expect(told(stuck, "failed_manual_intervention").slice(-2)).toEqual([
      "a undoing 8-12",
      "a stopped 12- (Could not be undone)",
    ]);
  });

  it("show a clean restart: the verb, the undoing, the wait for the turn", () => {
    const events = [
      event(0, "b", "started"),
      event(3, "b", "returned", "restart_clean by ada"),
      event(5, "b", "compensated"),
      event(5, "a", "started", "Started"),
      event(7, "a", "started", "Admitted"),
    ];
    expect(told(events, "running")).toEqual([
      "b working 0-3",
      "b undoing 3-5",
      "a waiting 5-7 (Waits for its turn)",
      "a working 7-",
    ]);
    expect(told(events.slice(0, 4), "pending").at(-1)).toBe("a waiting 5- (Waits for its turn)");
    const cancelled = [...events.slice(0, 3), event(6, "b", "returned", "cancel by ada"), event(9, "a", "skipped")];
    expect(told(cancelled, "cancelled")).toEqual(["b working 0-3", "b undoing 3-5", "b undoing 5-6", "a undoing 6-9"]);
  });

  it("follow each other without a gap or an overlap, and only the last one goes on, for every history", () => {
    const history = fc.array(
      fc.record({
        step: fc.nat(5),
        stage: fc.constantFrom("a", "b"),
        status: fc.constantFrom(...STAGE_EVENT_STATUSES),
      }),
      { maxLength: 12 },
    );
    fc.assert(
      fc.property(history, fc.constantFrom(...WORKFLOW_STATUSES), (steps, status) => {
        let second = 0;
        const events = steps.map(({ step, stage, status: one }) => {
          second += step;
          return event(second, stage, one);
        });
        const segments = segmentsOf(events, { status, undoing: status === "compensating" ? "a" : null });
        const times = new Set(events.map((one) => one.at.getTime()));
        segments.forEach(({ began, ended }, index) => {
          expect(times.has(began.getTime())).toBe(true);
          const next = segments[index + 1];
          if (ended === null) expect(next).toBeUndefined();
          else {
            expect(ended.getTime()).toBeGreaterThan(began.getTime());
            if (next !== undefined) expect(next.began.getTime()).toBeGreaterThanOrEqual(ended.getTime());
          }
        });
        const goesOn = segments.at(-1)?.ended === null;
        const isEnded = status === "completed" || status === "reconciled" || status === "cancelled";
        if (isEnded) expect(goesOn).toBe(false);
        else if (events.length > 0) expect(goesOn).toBe(true);
      }),
    );
  });
});

const usual = (seconds: Readonly<Record<string, number>>): ReadonlyMap<string, UsualDuration> =>
  new Map(
    Object.entries(seconds).map(([stage, median]) => [
      stage,
      { runs: 5, median_seconds: median, p90_seconds: 2 * median },
    ]),
  );
const facts = (given: Partial<TimelineFacts>): TimelineFacts => ({
  kind: "drain",
  status: "running",
  stage: "drain_node",
  deadline: at(100),
  undoing: null,
  events: [
    event(0, "disable_node", "started"),
    event(2, "disable_node", "succeeded", "cordoned"),
    event(2, "drain_node", "started"),
    event(3, "drain_node", "waiting", "the task"),
  ],
  usual: usual({ disable_node: 1, drain_node: 20, retire_gpuaas_node: 4 }),
  now: at(10),
  ...given,
});

describe("the timeline of an operation", () => {
  it("has the entered stages with their durations, and the expected ones", () => {
    const { stages, usual_seconds_left } = timelineOf(facts({}));
    expect(
      stages.map(({ stage, state, duration_seconds, deadline }) => [stage, state, duration_seconds, deadline]),
    ).toEqual([
      ["disable_node", "succeeded", 2, null],
      ["drain_node", "under_way", 8, at(100).toISOString()],
      ["retire_gpuaas_node", "expected", 0, null],
    ]);
    expect(stages[1]?.segments.map(({ state, ended_at }) => [state, ended_at])).toEqual([
      ["working", at(3).toISOString()],
      ["waiting", null],
    ]);
    // 12 seconds of the drain are left, and the retirement takes 4.
    expect(usual_seconds_left).toBe(16);
    expect(stages[2]?.usual).toEqual({ runs: 5, median_seconds: 4, p90_seconds: 8 });
  });

  it("names no remaining time if a stage is unknown, is over its usual time at zero, and expects nothing of an operation at rest", () => {
    expect(timelineOf(facts({ usual: usual({ drain_node: 20 }) })).usual_seconds_left).toBeNull();
    expect(timelineOf(facts({ now: at(500) })).usual_seconds_left).toBe(4);
    for (const status of WORKFLOW_STATUSES.filter((one) => one !== "running" && one !== "pending")) {
      const { stages, usual_seconds_left } = timelineOf(facts({ status }));
      expect(usual_seconds_left, status).toBeNull();
      expect(
        stages.map(({ stage }) => stage),
        status,
      ).toEqual(["disable_node", "drain_node"]);
    }
  });

  it("does not count the time in which a person was awaited", () => {
    const events = [
      event(0, "drain_node", "started"),
      event(5, "drain_node", "failed", "no agent"),
      event(905, "drain_node", "returned", "retry"),
      event(905, "drain_node", "started", "Admitted"),
    ];
    const { stages } = timelineOf(facts({ events, now: at(910) }));
    expect(stages[0]).toMatchObject({ stage: "drain_node", duration_seconds: 10, state: "under_way" });
  });

  it("shows a pending operation without events, a stage that is being undone, and an undone one", () => {
    const waiting = timelineOf(facts({ status: "pending", stage: "disable_node", events: [] }));
    expect(waiting.stages.map(({ state }) => state)).toEqual(["under_way", "expected", "expected"]);
    const undone = [...facts({}).events, event(20, "drain_node", "failed"), event(25, "drain_node", "compensated")];
    const undoing = timelineOf(facts({ status: "compensating", undoing: "disable_node", events: undone, now: at(30) }));
    expect(undoing.stages.map(({ stage, state }) => [stage, state])).toEqual([
      ["disable_node", "under_way"],
      ["drain_node", "undone"],
    ]);
    expect(undoing.stages[0]?.segments.at(-1)).toMatchObject({ state: "undoing", ended_at: null });
  });

  it("expects every later stage of every kind of operation, and none after a stage that it does not know", () => {
    for (const [kind, order] of Object.entries({ onboarding: ONBOARDING_STAGES, ...STAGES_OF_MODE }))
      for (const [index, stage] of order.entries()) {
        const { stages } = timelineOf(
          facts({ kind: kind as TimelineFacts["kind"], stage, events: [event(0, stage, "started")] }),
        );
        expect(stages.map((one) => one.stage)).toEqual(order.slice(index));
      }
    expect(
      timelineOf(facts({ stage: "of_tomorrow", events: [event(0, "of_tomorrow", "started")] })).stages,
    ).toHaveLength(1);
  });
});
