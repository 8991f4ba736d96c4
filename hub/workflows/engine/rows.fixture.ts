import { WorkflowId } from "../../../shared/ids.ts";
import type { ClaimedWorkflow } from "../../db/queries/workflows.ts";
import type { Rules } from "./advance.ts";

export const NOW = new Date("2026-01-02T03:04:05.000Z");
export const later = (seconds: number): Date => new Date(NOW.getTime() + seconds * 1000);

/** Returns the row of a running workflow at stage `b` of its stages `a`, `b` and `c`, which a hub has claimed at `NOW`. */
export const claimed = (fields: Partial<ClaimedWorkflow> = {}): ClaimedWorkflow => ({
  id: WorkflowId.parse("018f0000-0000-7000-8000-000000000001"),
  kind: "test",
  status: "running",
  siteId: null,
  batchId: null,
  stage: "b",
  attempt: 1,
  stageRuns: 1,
  stageEnteredAt: NOW,
  stageDeadline: null,
  waitReason: null,
  waitOn: null,
  wakeAt: NOW,
  leaseOwner: null,
  leaseUntil: null,
  fence: 7,
  input: {},
  state: { kept: 1 },
  failureClass: null,
  failureCode: null,
  failureMessage: null,
  evidence: {},
  nextAction: null,
  compensation: null,
  stopRequest: null,
  cancelRequestedAt: null,
  requestedBy: null,
  requestedAt: NOW,
  toldAt: null,
  untold: false,
  startedAt: NOW,
  completedAt: null,
  updatedAt: NOW,
  now: NOW,
  ...fields,
});

export const rules = (stage: Partial<Rules["stage"]> = {}): Rules => ({
  stageNames: ["a", "b", "c"],
  compensable: ["a", "b"],
  stage: { name: "b", retry: { maxAttempts: 3, baseSeconds: 2, maxSeconds: 60 }, deadline: later(600), ...stage },
  random: 0,
});
