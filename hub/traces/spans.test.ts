import { describe, expect, it } from "vitest";
import { SiteId, WorkflowId } from "../../shared/ids.ts";
import { STAGE_EVENT_STATUSES, TERMINAL_WORKFLOW_STATUSES, WORKFLOW_STATUSES } from "../../shared/workflow-status.ts";
import type { Change, StageEnded, WorkflowEnded } from "../db/committed.ts";
import { currentStage, inStage } from "./current-stage.ts";
import { parseHeaders } from "./header-lines.ts";
import { spanOfCall, spansOf } from "./spans.ts";
import { stageSpanId, traceIdOf, workflowSpanId } from "./trace-ids.ts";

const workflowId = WorkflowId.parse("7c9e6679-7425-40de-944b-e07fc1f90ae7");
const siteId = SiteId.parse("16fd2706-8baf-433b-82eb-8c7fada847da");
const failure = { class: "upstream_transient", code: "maas_unavailable" } as const;
const enteredAt = new Date("2026-01-02T03:04:05.006Z");
const endedAt = new Date("2026-01-02T03:05:05.006Z");
const ofWorkflow = { workflowId, kind: "onboard", siteId, host: { hostname: "gpu-1" } } as const;

const stageEnded = (change: Partial<StageEnded>): StageEnded => ({
  ...ofWorkflow,
  what: "stage_ended",
  stage: "deploy_via_maas",
  attempt: 3,
  outcome: "succeeded",
  reason: "Deployed",
  failure: null,
  nextStage: "deploy_via_maas",
  status: "running",
  enteredAt,
  endedAt,
  byRun: true,
  ...change,
});
const workflowEnded = (change: Partial<WorkflowEnded>): WorkflowEnded => ({
  ...ofWorkflow,
  what: "workflow_ended",
  status: "completed",
  requestedAt: enteredAt,
  endedAt,
  failure: null,
  ...change,
});

describe("the span of a stage", () => {
  it("tells the stage, its times and what it belongs to", () => {
    expect(spansOf(stageEnded({}))).toEqual([
      {
        traceId: "7c9e6679742540de944be07fc1f90ae7",
        spanId: stageSpanId({ workflowId, stage: "deploy_via_maas", enteredAt }),
        parentId: workflowSpanId(workflowId),
        name: "onboard deploy_via_maas",
        kind: "internal",
        startMs: enteredAt.getTime(),
        endMs: endedAt.getTime(),
        error: null,
        attributes: {
          "muster.workflow.id": workflowId,
          "muster.workflow.kind": "onboard",
          "muster.site.id": siteId,
          "muster.hostname": "gpu-1",
          "muster.stage": "deploy_via_maas",
          "muster.stage.attempts": 3,
          "muster.stage.outcome": "succeeded",
        },
      },
    ]);
  });

  it.each(STAGE_EVENT_STATUSES.filter((status) => status !== "started" && status !== "waiting"))(
    "exists once for the outcome %s, unless the engine repeats the stage",
    (outcome) => {
      const [span, ...more] = spansOf(stageEnded({ outcome, failure: outcome === "failed" ? failure : null }));
      expect(more).toEqual([]);
      if (outcome === "retrying") expect(span).toBeUndefined();
      else
        expect([span?.attributes["muster.stage.outcome"], span?.error]).toEqual([
          outcome,
          outcome === "failed" ? failure.code : null,
        ]);
    },
  );

  it("names the failure", () => {
    const [span] = spansOf(stageEnded({ outcome: "failed", failure }));
    expect(span?.attributes).toMatchObject({
      "muster.failure.class": failure.class,
      "muster.failure.code": failure.code,
    });
  });

  it("does not exist if a verb ended the stage, or if its entry is unknown", () => {
    expect(spansOf(stageEnded({ byRun: false }))).toEqual([]);
    expect(spansOf(stageEnded({ enteredAt: null }))).toEqual([]);
  });

  it("never ends before it starts, although two clocks differ", () => {
    expect(spansOf(stageEnded({ endedAt: new Date(0) }))).toMatchObject([{ endMs: enteredAt.getTime() }]);
  });
});

describe("the span of a workflow", () => {
  it.each(WORKFLOW_STATUSES)("with the status %s exists only if the workflow is over", (status) => {
    const spans = spansOf(workflowEnded({ status, failure: status === "completed" ? null : failure }));
    if (!TERMINAL_WORKFLOW_STATUSES.some((one) => one === status)) expect(spans).toEqual([]);
    else
      expect(spans).toMatchObject([
        {
          traceId: traceIdOf(workflowId),
          spanId: workflowSpanId(workflowId),
          parentId: null,
          name: "onboard",
          startMs: enteredAt.getTime(),
          endMs: endedAt.getTime(),
          error: status === "completed" ? null : failure.code,
          attributes: { "muster.workflow.status": status },
        },
      ]);
  });
});

it("changes of nodes and events are no spans", () => {
  const others = [
    { what: "node_moved", nodeId: "n", hostname: "h", siteId, from: "active", to: "draining", owner: "o", reason: "r" },
    { what: "event", type: "node.active", subject: "nodes/n", data: {} },
  ] as unknown as Change[];
  expect(others.flatMap(spansOf)).toEqual([]);
});

describe("the span of a call", () => {
  const visit = { workflowId, stage: "deploy_via_maas", enteredAt };
  const call = { to: "maas", operation: "POST machines deploy", failure: null, startMs: 10, endMs: 30 } as const;

  it("belongs to the stage that makes the call, and has an id of its own", () => {
    const [first, second] = [spanOfCall(visit, call), spanOfCall(visit, call)];
    expect(first).toMatchObject({
      traceId: traceIdOf(workflowId),
      parentId: spansOf(stageEnded({}))[0]?.spanId,
      name: "maas POST machines deploy",
      kind: "client",
      startMs: 10,
      endMs: 30,
      error: null,
      attributes: { "peer.service": "maas", "muster.operation": call.operation, "muster.stage": visit.stage },
    });
    expect(first.spanId).toMatch(/^[0-9a-f]{16}$/);
    expect(second.spanId).not.toBe(first.spanId);
  });

  it("says how the call failed, and never ends before it starts", () => {
    expect(spanOfCall(visit, { ...call, failure: "timeout", endMs: 5 })).toMatchObject({ error: "timeout", endMs: 10 });
  });

  it("differs by stage, by the time of the entry, and by workflow", () => {
    const other = WorkflowId.parse("00000000-0000-4000-8000-000000000001");
    const ids = [visit, { ...visit, stage: "x" }, { ...visit, enteredAt: endedAt }, { ...visit, workflowId: other }];
    expect(new Set([...ids.map(stageSpanId), workflowSpanId(workflowId), workflowSpanId(other)]).size).toBe(6);
  });

  it("knows the stage only inside of the stage", async () => {
    expect(currentStage()).toBeNull();
    const seen = await Promise.all([
      inStage(visit, async () => {
        await new Promise((resolve) => setImmediate(resolve));
        return currentStage();
      }),
      inStage({ ...visit, stage: "x" }, async () => currentStage()),
    ]);
    expect(seen.map((one) => one?.stage)).toEqual(["deploy_via_maas", "x"]);
    expect(currentStage()).toBeNull();
  });
});

describe("the file of headers", () => {
  it("has a header a line", () => {
    expect(parseHeaders("# collector\nAuthorization: Bearer abc \n\r\nx-tenant:\tone\n")).toEqual({
      authorization: "Bearer abc",
      "x-tenant": "one",
    });
    expect(parseHeaders("")).toEqual({});
  });

  it.each(["no colon", "bad name: x", ": x", "a: caf\u00e9"])("refuses the line %s and does not repeat it", (line) => {
    expect(() => parseHeaders(`a: b\n${line}`)).toThrow(
      /^Line 2 of the file of headers is not of the form "name: value"[.]$/,
    );
  });
});
