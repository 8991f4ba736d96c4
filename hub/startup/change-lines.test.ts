import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { EVENTS, type EventType } from "../../shared/events.ts";
import { NodeId, SiteId, WorkflowId } from "../../shared/ids.ts";
import { STAGE_EVENT_STATUSES, WORKFLOW_STATUSES } from "../../shared/workflow-status.ts";
import type { Change, StageEnded, WorkflowEnded } from "../db/committed.ts";
import { EVENT_LINES, lineOf } from "./change-lines.ts";

const ASKER = { name: "ann", requestId: "r-1" };
const workflow = {
  workflowId: WorkflowId.parse(randomUUID()),
  kind: "onboard",
  siteId: SiteId.parse(randomUUID()),
  host: { hostname: "m-1" },
};
const stageEnded = (outcome: StageEnded["outcome"]): StageEnded => ({
  what: "stage_ended",
  ...workflow,
  stage: "wait_for_ready",
  attempt: 2,
  outcome,
  reason: "MAAS said no",
  failure: { class: "upstream_transient", code: "maas_timeout" },
  nextStage: "configure_storage",
  status: "running",
  enteredAt: new Date(0),
  endedAt: new Date(1000),
  byRun: true,
});
const workflowEnded = (status: WorkflowEnded["status"]): WorkflowEnded => ({
  what: "workflow_ended",
  ...workflow,
  status,
  requestedAt: new Date(0),
  endedAt: new Date(1000),
  failure: null,
});
const event = (type: EventType): Change => ({
  what: "event",
  type,
  subject: "nodes/x",
  data: { node_id: "x", message: "because", by: "bob" },
});

describe("the line of a change", () => {
  it("says of a node's move which node, from where, to where, why, and who", () => {
    const nodeId = NodeId.parse(randomUUID());
    const about = {
      nodeId,
      hostname: "m-1",
      siteId: workflow.siteId,
      owner: "heartbeat",
      reason: "No contact",
    } as const;
    const moved = { what: "node_moved", ...about, from: "active", to: "offline" } as const;
    const fields = { node_id: nodeId, hostname: "m-1", from: "active", to: "offline", reason: "No contact" };
    expect(lineOf(moved, null)).toMatchObject({
      level: "warn",
      message: "node status changed",
      fields: { ...fields, actor: "heartbeat" },
    });
    expect(lineOf(moved, ASKER)?.fields).toMatchObject({ ...fields, actor: "ann", request_id: "r-1" });
  });

  it.each(STAGE_EVENT_STATUSES.filter((status) => status !== "started" && status !== "waiting"))(
    "says of a stage that %s which stage, of what, and why",
    (outcome) => {
      const line = lineOf(stageEnded(outcome), null);
      const failed = outcome === "failed" || outcome === "retrying";
      expect(line?.level).toBe(failed ? "warn" : "info");
      expect(line?.fields).toMatchObject({
        workflow_id: workflow.workflowId,
        kind: "onboard",
        hostname: "m-1",
        from: "wait_for_ready",
        to: "configure_storage",
        outcome,
        reason: "MAAS said no",
        actor: "onboard",
      });
      expect("failure_class" in (line?.fields ?? {})).toBe(failed);
    },
  );

  it.each(WORKFLOW_STATUSES)("says of a workflow that ended as %s what it was", (status) => {
    const line = lineOf(workflowEnded(status), null);
    expect(line).toMatchObject({
      level: status.startsWith("failed") ? "error" : "info",
      fields: { kind: "onboard", to: status, actor: "onboard" },
    });
  });

  it.each(Object.keys(EVENTS) as EventType[])(
    "tells the event %s once, or leaves it to the line of its change",
    (type) => {
      const told = EVENT_LINES[type];
      const line = lineOf(event(type), null);
      if (told === null) expect(line).toBeNull();
      else
        expect(line).toMatchObject({
          level: told[0],
          message: told[1],
          fields: { subject: "nodes/x", node_id: "x", reason: "because", actor: "bob" },
        });
    },
  );
});
