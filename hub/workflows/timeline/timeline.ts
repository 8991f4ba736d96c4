import type { OperationTimeline, TimelineStage, UsualDuration } from "../../../shared/api/operation-timeline.ts";
import type { OperationKind } from "../../../shared/api/operations.ts";
import {
  ONBOARDING_STAGES,
  STAGES_OF_MODE,
  type StageEventStatus,
  type WorkflowStatus,
} from "../../../shared/workflow-status.ts";
import { type PastEvent, type Segment, segmentsOf } from "./segments.ts";

export interface TimelineFacts {
  readonly kind: OperationKind;
  readonly status: WorkflowStatus;
  readonly stage: string;
  readonly deadline: Date | null;
  /** The stage that the operation undoes now; null if it undoes none. */
  readonly undoing: string | null;
  /** The operation's events, oldest first. */
  readonly events: readonly PastEvent[];
  /** How long each stage usually takes. */
  readonly usual: ReadonlyMap<string, UsualDuration>;
  readonly now: Date;
}

/** The stages of an operation in the order in which the operation normally enters them. */
const stagesOf = (kind: OperationKind): readonly string[] =>
  kind === "onboarding" ? ONBOARDING_STAGES : STAGES_OF_MODE[kind];

const STATE_AFTER: Readonly<Record<StageEventStatus, TimelineStage["state"]>> = {
  started: "under_way",
  waiting: "under_way",
  retrying: "under_way",
  succeeded: "succeeded",
  skipped: "skipped",
  returned: "returned",
  failed: "failed",
  compensated: "undone",
};

/** Only a pending or running operation goes on through its stages without a person. */
const goesOn = ({ status }: Pick<TimelineFacts, "status">): boolean => status === "pending" || status === "running";

/** The stages that the operation has entered come first, in the order of their first event; then the stages that are still to come. */
export function timelineOf(facts: TimelineFacts): Pick<OperationTimeline, "stages" | "usual_seconds_left"> {
  const segments = segmentsOf(facts.events, facts);
  const expected = expectedStages(facts);
  const entered = [...new Set([...facts.events.map(({ stage }) => stage), ...(goesOn(facts) ? [facts.stage] : [])])];
  const rows = [...entered, ...expected.filter((stage) => !entered.includes(stage))];
  return {
    stages: rows.map((stage) => rowOf(stage, facts, segments)),
    usual_seconds_left: goesOn(facts) ? usualLeft(facts, segments, expected) : null,
  };
}

function rowOf(stage: string, facts: TimelineFacts, segments: readonly Segment[]): TimelineStage {
  const own = segments.filter((one) => one.stage === stage);
  const isPresent = goesOn(facts) && stage === facts.stage;
  const last = facts.events.findLast((one) => one.stage === stage);
  const isUndone = own.at(-1)?.state === "undoing" && own.at(-1)?.ended === null;
  return {
    stage,
    state: isPresent || isUndone ? "under_way" : last === undefined ? "expected" : STATE_AFTER[last.status],
    segments: own.map(({ state, attempt, began, ended, reason }) => ({
      state,
      attempt,
      began_at: began.toISOString(),
      ended_at: ended?.toISOString() ?? null,
      reason,
    })),
    duration_seconds: own
      .filter(({ state }) => state !== "stopped")
      .reduce((sum, { began, ended }) => sum + seconds(began, ended ?? facts.now), 0),
    deadline: isPresent ? (facts.deadline?.toISOString() ?? null) : null,
    message: last?.message ?? null,
    usual: facts.usual.get(stage) ?? null,
  };
}

const seconds = (from: Date, to: Date): number => Math.max(0, (to.getTime() - from.getTime()) / 1000);

/** After a return to an earlier stage, the operation enters all later stages again, also those that already have a result. */
function expectedStages(facts: TimelineFacts): readonly string[] {
  if (!goesOn(facts)) return [];
  const order = stagesOf(facts.kind);
  const present = order.indexOf(facts.stage);
  // A hub of another version may know the present stage by another name, and this hub then cannot tell which stages follow.
  return present === -1 ? [] : order.slice(present + 1);
}

/**
 * For its present stage, an operation's usual remaining time contains the stage's median duration less the time that has already passed in the stage.
 */
function usualLeft({ usual, stage, now }: TimelineFacts, segments: readonly Segment[], expected: readonly string[]) {
  const present = usual.get(stage);
  const medians = expected.map((one) => usual.get(one)?.median_seconds ?? null);
  if (present === undefined || medians.includes(null)) return null;
  const entered = segments.findLastIndex((one) => one.stage !== stage) + 1;
  const began = segments[entered]?.began ?? now;
  const left = Math.max(0, present.median_seconds - seconds(began, now));
  return medians.reduce<number>((sum, one) => sum + (one ?? 0), left);
}
