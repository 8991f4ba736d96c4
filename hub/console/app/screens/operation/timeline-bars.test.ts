import { describe, expect, it } from "vitest";
import type { Timeline, TimelineStage } from "./operation-questions.ts";
import { drawingOf } from "./timeline-bars.ts";
import { barWords, rowWords } from "./timeline-words.ts";

const at = (minute: number): string => new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString();
const ms = (minute: number): number => Date.parse(at(minute));
const stage = (given: Partial<TimelineStage>): TimelineStage => ({
  stage: "commission_node",
  state: "succeeded",
  segments: [],
  duration_seconds: 0,
  deadline: null,
  message: null,
  usual: null,
  ...given,
});
const timeline = (stages: readonly TimelineStage[], given: Partial<Timeline> = {}): Timeline => ({
  operation_id: "o",
  kind: "onboarding",
  status: "running",
  node_id: "n",
  site_id: null,
  hostname: "c07u41",
  requested_at: at(0),
  completed_at: null,
  now: at(10),
  stages: [...stages],
  usual_seconds_left: null,
  cut: false,
  ...given,
});
const usual = (minutes: number) => ({ runs: 9, median_seconds: minutes * 60, p90_seconds: minutes * 90 });
const open = stage({
  state: "under_way",
  segments: [
    { state: "working", attempt: 1, began_at: at(0), ended_at: at(2), reason: null },
    { state: "waiting", attempt: 1, began_at: at(2), ended_at: null, reason: "MAAS to commission the machine" },
  ],
  duration_seconds: 600,
  usual: usual(15),
});
const expected = stage({ stage: "deploy_via_maas", state: "expected", usual: usual(8) });

describe("the drawing of a timeline", () => {
  it("lets an open segment grow with the hub's clock, without a new answer", () => {
    const drawing = drawingOf(timeline([open]), ms(13));
    const [row] = drawing.rows;
    expect(row?.bars.map(({ to }) => to)).toEqual([ms(2), ms(13)]);
    expect(row?.seconds).toBe(780);
    expect(barWords(row?.bars[1] as never)).toBe("waiting 11 min, goes on: MAAS to commission the machine");
  });

  it("places the expected stages one after the other behind what is left of the present one", () => {
    const drawing = drawingOf(timeline([open, expected], { usual_seconds_left: 13 * 60 }), ms(11));
    expect(drawing.left).toBe(12 * 60);
    expect(drawing.rows[1]?.usual).toEqual({ from: ms(15), to: ms(23) });
    expect(drawing.scale.parts.at(-1)).toMatchObject({ kind: "future", from: ms(11), to: ms(23) });
    expect(rowWords(drawing.rows[1] as never)).toBe("expected, usually 8 min");
  });

  it("keeps the time of the expected stages when the present one takes longer than usual", () => {
    expect(drawingOf(timeline([open, expected], { usual_seconds_left: 13 * 60 }), ms(60)).left).toBe(8 * 60);
    const unknown = drawingOf(timeline([open, expected]), ms(60));
    expect(unknown.left).toBeNull();
    expect(unknown.scale.parts.some(({ kind }) => kind === "future")).toBe(false);
    expect(unknown.rows[1]?.usual).toBeNull();
  });

  it("ends with an ended operation, whatever the time is", () => {
    const done = stage({
      segments: [{ state: "working", attempt: 1, began_at: at(0), ended_at: at(3), reason: null }],
      duration_seconds: 180,
    });
    const drawing = drawingOf(timeline([done], { status: "completed", completed_at: at(3) }), ms(900));
    expect(drawing.now).toBe(ms(3));
    expect(drawing.rows[0]?.seconds).toBe(180);
  });

  it("folds the time in which a person was awaited, and does not count it as time of the stage", () => {
    const failed = stage({
      state: "failed",
      segments: [
        { state: "working", attempt: 1, began_at: at(0), ended_at: at(6), reason: null },
        { state: "stopped", attempt: 1, began_at: at(6), ended_at: null, reason: "no power" },
      ],
      duration_seconds: 360,
    });
    const drawing = drawingOf(timeline([failed], { status: "failed_retryable", completed_at: at(6) }), ms(500));
    expect(drawing.scale.parts.map(({ kind }) => kind)).toEqual(["time", "fold"]);
    expect(drawing.rows[0]?.seconds).toBe(360);
  });
});
