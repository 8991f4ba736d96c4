import { z } from "zod";
import { ExternalStatus } from "./external-attempt.ts";
import { ConditionStatus } from "./readiness.ts";

/** The domain events of a node's readiness, and of attempts to provision its host externally. */
export const READINESS_EVENTS = {
  "node.condition.stale": {
    subject: "nodes/{node_id}",
    meaning:
      "A node's condition has expired because nobody reported it again, so its status is `Unknown`; `was` is the status that was last reported for the condition.",
    data: z.strictObject({
      node_id: z.string(),
      hostname: z.string(),
      condition: z.string(),
      was: ConditionStatus,
      heard_at: z.string(),
    }),
  },
  "node.readiness.lapsed": {
    subject: "nodes/{node_id}",
    meaning:
      "A time limit of the node's readiness policy has passed, so the node is not ready: a condition is `overdue` or its last report is `too_old`.",
    data: z.strictObject({
      node_id: z.string(),
      hostname: z.string(),
      condition: z.string(),
      kind: z.enum(["overdue", "too_old"]),
      since: z.string(),
      message: z.string(),
      next_action: z.string(),
    }),
  },
  "node.external_attempt.changed": {
    subject: "nodes/{node_id}",
    meaning:
      "An attempt of an external system to provision a node's host began or got another status; `reason` says why, and `failure_code` only a failure.",
    data: z.strictObject({
      attempt_id: z.string(),
      node_id: z.string(),
      hostname: z.string(),
      site_id: z.string().nullable(),
      number: z.number(),
      provisioner: z.string(),
      status: ExternalStatus,
      reason: z.string(),
      failure_code: z.string().optional(),
    }),
  },
} as const;
