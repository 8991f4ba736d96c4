import type { Change, StageEnded, WorkflowEnded } from "../db/committed.ts";
import { isTerminal } from "../db/queries/workflows.ts";
import type { StageVisit } from "./current-stage.ts";
import { callSpanId, stageSpanId, traceIdOf, workflowSpanId } from "./trace-ids.ts";

/** One span of a trace, as values. Times are in milliseconds since 1970. */
export interface SpanValues {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string | null;
  readonly name: string;
  /** A span with the kind `client` is a call to another system. */
  readonly kind: "internal" | "client";
  readonly startMs: number;
  readonly endMs: number;
  readonly error: string | null;
  readonly attributes: Readonly<Record<string, string | number>>;
}

/** A call that a stage made to another system. */
export interface OutsideCall {
  readonly to: "maas" | "bmc" | "secret_store";
  readonly operation: string;
  /** The code of the call's failure; null if the call succeeded. */
  readonly failure: string | null;
  readonly startMs: number;
  readonly endMs: number;
}

/** Leaves out the attributes of a span that have no known value, because OpenTelemetry knows no null. */
const known = (attributes: Readonly<Record<string, string | number | null | undefined>>): SpanValues["attributes"] =>
  Object.fromEntries(Object.entries(attributes).flatMap(([key, value]) => (value == null ? [] : [[key, value]])));

const ofWorkflow = ({ workflowId, kind, siteId, host, failure }: StageEnded | WorkflowEnded) => ({
  "muster.workflow.id": workflowId,
  "muster.workflow.kind": kind,
  "muster.site.id": siteId,
  "muster.node.id": host.node_id,
  "muster.hostname": host.hostname,
  "muster.failure.class": failure?.class,
  "muster.failure.code": failure?.code,
});

/**
 * Returns the span of a stage that has ended. A failed attempt that the engine repeats ends no stage. A stage that an operator's command ended has no
 * span, because the stage had already failed, and the wait for the operator does not belong to its duration.
 */
function stageSpan(change: StageEnded): SpanValues[] {
  const { workflowId, kind, stage, attempt, outcome, failure, enteredAt, endedAt, byRun } = change;
  if (!byRun || enteredAt === null || outcome === "retrying") return [];
  return [
    {
      traceId: traceIdOf(workflowId),
      spanId: stageSpanId({ workflowId, stage, enteredAt }),
      parentId: workflowSpanId(workflowId),
      name: `${kind} ${stage}`,
      kind: "internal",
      startMs: enteredAt.getTime(),
      endMs: Math.max(enteredAt.getTime(), endedAt.getTime()),
      error: outcome === "failed" ? `${failure?.code ?? "failed"}` : null,
      attributes: known({
        ...ofWorkflow(change),
        "muster.stage": stage,
        "muster.stage.attempts": attempt,
        "muster.stage.outcome": outcome,
      }),
    },
  ];
}

/** Returns the span of a workflow that is over. A failed workflow that a person may continue is not over. */
function workflowSpan(change: WorkflowEnded): SpanValues[] {
  const { workflowId, kind, status, requestedAt, endedAt, failure } = change;
  if (!isTerminal(status)) return [];
  return [
    {
      traceId: traceIdOf(workflowId),
      spanId: workflowSpanId(workflowId),
      parentId: null,
      name: kind,
      kind: "internal",
      startMs: requestedAt.getTime(),
      endMs: Math.max(requestedAt.getTime(), endedAt.getTime()),
      error: failure === null ? null : failure.code,
      attributes: known({ ...ofWorkflow(change), "muster.workflow.status": status }),
    },
  ];
}

export function spansOf(change: Change): SpanValues[] {
  switch (change.what) {
    case "stage_ended":
      return stageSpan(change);
    case "workflow_ended":
      return workflowSpan(change);
    case "node_moved":
    case "event":
      return [];
  }
}

/** Returns the span of a call that a stage made. The parent of the call's span is the span of the stage, which ends later. */
export function spanOfCall(visit: StageVisit, { to, operation, failure, startMs, endMs }: OutsideCall): SpanValues {
  return {
    traceId: traceIdOf(visit.workflowId),
    spanId: callSpanId(),
    parentId: stageSpanId(visit),
    name: `${to} ${operation}`,
    kind: "client",
    startMs,
    endMs: Math.max(startMs, endMs),
    error: failure,
    attributes: known({ "peer.service": to, "muster.operation": operation, "muster.stage": visit.stage }),
  };
}
