import type { EventType } from "../../shared/events.ts";
import type { LogFields, LogLevel } from "../../shared/log.ts";
import { isFailed } from "../../shared/workflow-status.ts";
import type { Asker, Change, EventWritten, NodeMoved, StageEnded, WorkflowEnded } from "../db/committed.ts";

/** The log line of a change: one line for each committed change that an operator cares about. */
export interface ChangeLine {
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: LogFields;
}

type EventLine = readonly [LogLevel, string] | null;

/**
 * The level and the message of each domain event's line. An event type whose line is null writes no log line, mostly because `node_moved` or
 * `workflow_ended` already has a line for the same change.
 */
export const EVENT_LINES: Readonly<Record<EventType, EventLine>> = {
  "hub.database.restored": ["warn", "database restored from a backup"],
  "node.onboarding.started": ["info", "workflow admitted"],
  "node.onboarding.completed": null,
  "node.onboarding.failed": null,
  "node.onboarding.manual_intervention_required": null,
  "node.onboarding.cancelled": null,
  "node.decommission.started": ["info", "workflow admitted"],
  "node.decommission.completed": null,
  "node.decommission.failed": null,
  "node.decommission.manual_intervention_required": null,
  "node.decommission.cancelled": null,
  "operation.progressed": null,
  "node.allocation.started": ["info", "allocation started"],
  "node.allocation.active": ["info", "allocation active"],
  "node.allocation.failed": ["warn", "allocation failed"],
  "node.allocation.ending": ["info", "allocation ending"],
  "node.allocation.ended": ["info", "allocation ended"],
  "node.allocation.changed": ["info", "allocation changed"],
  "node.allocation.power": ["info", "power of an instance's machine changed"],
  "node.power.changed": ["info", "power of a machine changed"],
  "node.status.changed": null,
  "node.cordon.changed": ["info", "cordon of a node changed"],
  "node.health_override.set": ["warn", "health override set"],
  "node.health_override.lifted": ["info", "health override lifted"],
  "node.condition.stale": ["warn", "condition of a node became stale"],
  "node.external_attempt.changed": ["info", "an attempt to provision a host externally changed"],
  "node.readiness.lapsed": ["warn", "a time limit of a node's readiness policy has passed"],
  "node.adopted": ["info", "running host adopted"],
  "node.adoption.refused": ["warn", "agent of another host refused"],
  "node.machine.bound": ["info", "node bound to its machine"],
  "node.machine.unbound": ["info", "node unbound from its machine"],
  "node.drift.detected": ["warn", "drift detected"],
  "node.drift.resolved": ["info", "drift resolved"],
  "node.roce.incomplete": ["warn", "node lacks addresses of its RoCE rows"],
  "node.identity.barred": ["warn", "two hosts use one identity"],
  "node.identity.restored": ["info", "identity of a node restored"],
  "batch.paused": ["warn", "batch paused"],
  "batch.resumed": ["info", "batch resumed"],
  "site.breaker.tripped": ["error", "a site's breaker has tripped"],
  "site.breaker.reset": ["info", "breaker reset"],
  "site.credential.warning": ["warn", "credential of a site is unused or fails"],
  "authority.rotation.changed": ["info", "rotation of the hub's keys changed"],
  "signal_sender.changed": ["info", "a signal sender was created, rotated or revoked"],
  "token.changed": ["info", "a token was created, rotated, revoked, restored or used"],
  "approval.requested": ["info", "a request waits for a second person"],
  "approval.approved": ["info", "a second person has approved a request"],
  "approval.refused": ["info", "a second person has refused a request"],
  "approval.used": ["info", "an approval was used"],
  "approval.expired": ["info", "an approval has expired"],
  "approval.withdrawn": ["info", "a request for an approval was withdrawn"],
  "repair.opened": ["warn", "a fault of a machine was reported"],
  "repair.requested": ["info", "a repair was requested"],
  "repair.held_back": ["warn", "a report of a fault asks for no repair by itself"],
  "repair.claimed": ["info", "a machine was claimed for repair"],
  "repair.repaired": ["info", "a repair is said to be done"],
  "repair.failed": ["warn", "a repair has failed"],
  "repair.escalated": ["warn", "a repair needs a person of the provider"],
  "repair.changed": ["info", "a repair case changed"],
  "repair.closed": ["info", "a machine is out of repair"],
  "repair.abandoned": ["warn", "a node was removed during its repair"],
  "webhook.tested": null,
};

/** Returns the log line of a committed change; null if the change has no line of its own. */
export function lineOf(change: Change, asker: Asker | null): ChangeLine | null {
  switch (change.what) {
    case "node_moved":
      return nodeLine(change, asker);
    case "stage_ended":
      return stageLine(change, asker);
    case "workflow_ended":
      return workflowLine(change, asker);
    case "event":
      return eventLine(change, asker);
  }
}

/** The person or program that asked for a change, or the part of Muster that made the change by itself. */
const by = (asker: Asker | null, part: string): LogFields =>
  asker === null ? { actor: part } : { actor: asker.name, request_id: asker.requestId };

const nodeLine = (
  { nodeId, hostname, siteId, from, to, owner, reason }: NodeMoved,
  asker: Asker | null,
): ChangeLine => ({
  level: to === "quarantined" || to === "offline" ? "warn" : "info",
  message: "node status changed",
  fields: { node_id: nodeId, hostname, site_id: siteId, from, to, owner, reason, ...by(asker, owner) },
});

const STAGE_MESSAGES = {
  succeeded: ["info", "stage ended"],
  skipped: ["info", "stage ended"],
  compensated: ["info", "stage undone"],
  returned: ["info", "stage left"],
  retrying: ["warn", "stage is tried again"],
  failed: ["warn", "stage failed"],
} as const satisfies Record<StageEnded["outcome"], readonly [LogLevel, string]>;

function stageLine(change: StageEnded, asker: Asker | null): ChangeLine {
  const { workflowId, kind, siteId, stage, attempt, outcome, reason, nextStage, status, failure, host } = change;
  const [level, message] = STAGE_MESSAGES[outcome];
  const failed = outcome === "failed" || outcome === "retrying";
  return {
    level,
    message,
    fields: {
      workflow_id: workflowId,
      kind,
      ...host,
      site_id: siteId,
      from: stage,
      to: nextStage,
      attempt,
      outcome,
      status,
      ...(failed && failure !== null ? { failure_class: failure.class, error_code: failure.code } : {}),
      reason,
      ...by(asker, kind),
    },
  };
}

function workflowLine(
  { workflowId, kind, siteId, status, failure, host }: WorkflowEnded,
  asker: Asker | null,
): ChangeLine {
  const failed = isFailed(status);
  return {
    level: failed ? "error" : "info",
    message: failed ? "workflow failed" : "workflow ended",
    fields: {
      workflow_id: workflowId,
      kind,
      ...host,
      site_id: siteId,
      to: status,
      ...(failure === null ? {} : { failure_class: failure.class, error_code: failure.code }),
      ...by(asker, kind),
    },
  };
}

function eventLine({ type, subject, data }: EventWritten, asker: Asker | null): ChangeLine | null {
  const line = EVENT_LINES[type];
  if (line === null) return null;
  const [level, message] = line;
  const { message: reason, by: person, ...told } = data;
  return {
    level,
    message,
    fields: {
      subject,
      ...told,
      ...(reason === undefined ? {} : { reason }),
      ...by(asker, typeof person === "string" ? person : "hub"),
    },
  };
}
