import { z } from "zod";
import { ADOPTION_DIFFERENCES } from "./adoption.ts";
import { APPROVAL_EVENTS } from "./approval-events.ts";
import { BreakerKind, DriftAction, DriftRule, DriftSeverity } from "./drift.ts";
import { FAILURE_CLASSES } from "./failures.ts";
import { CLONE_EVIDENCE_CODES } from "./identity.ts";
import { NODE_STATUSES } from "./node-status.ts";
import { BATCH_EVENTS, OPERATION_EVENTS } from "./operation-events.ts";
import { POWER_STATES, POWER_VERBS } from "./power.ts";
import { READINESS_EVENTS } from "./readiness-events.ts";
import { REPAIR_EVENTS } from "./repair-events.ts";
import { ROTATION_PHASES } from "./trust.ts";
import { DECOMMISSION_MODES, WORKFLOW_STATUSES } from "./workflow-status.ts";

/** The members of an event that name a node and its machine in MAAS. */
const ofMachine = {
  node_id: z.string(),
  hostname: z.string(),
  site_id: z.string(),
  maas_system_id: z.string(),
};

/**
 * The event at a workflow's end has the same members for every kind of workflow. Only the event of a failed workflow has the members about a failure.
 */
const ending = {
  status: z.enum(WORKFLOW_STATUSES),
  stage: z.string(),
  failure_class: z.enum(FAILURE_CLASSES as [string, ...string[]]).optional(),
  error_code: z.string().optional(),
  message: z.string().optional(),
};
const onboarding = {
  onboarding_id: z.string(),
  batch_id: z.string().nullable(),
  site_id: z.string().nullable(),
  hostname: z.string().optional(),
};
const decommission = {
  decommission_id: z.string(),
  batch_id: z.string().nullable().optional(),
  mode: z.enum(DECOMMISSION_MODES),
  site_id: z.string().nullable(),
  node_id: z.string().optional(),
};

const allocation = {
  allocation_id: z.string(),
  node_id: z.string(),
  hostname: z.string(),
  site_id: z.string().nullable(),
  tenant: z.string(),
  message: z.string(),
};

const healthOverride = {
  node_id: z.string(),
  hostname: z.string(),
  source: z.string(),
  by: z.string(),
  reason: z.string(),
};

const drift = { node_id: z.string(), hostname: z.string(), site_id: z.string(), rule: DriftRule };
const SenderChange = z.enum(["created", "rotated", "revoked"]);
const OnboardingStarted = z.strictObject(onboarding);
const OnboardingEnded = z.strictObject({ ...onboarding, ...ending });
const DecommissionStarted = z.strictObject(decommission);
const DecommissionEnded = z.strictObject({ ...decommission, ...ending });
/** An event of an allocation has `error_code` only after an error, and `decommission_id` only if a decommission cleans the node. */
const AllocationChanged = z.strictObject({
  ...allocation,
  error_code: z.string().optional(),
  decommission_id: z.string().optional(),
});

const PowerChanged = z.strictObject({
  action_id: z.string(),
  node_id: z.string(),
  hostname: z.string(),
  site_id: z.string(),
  allocation_id: z.string().optional(),
  tenant: z.string().optional(),
  verb: z.enum(POWER_VERBS),
  state: z.enum(POWER_STATES),
  by: z.string(),
  message: z.string(),
  error_code: z.string().optional(),
});

/** The kinds of a site's credentials of which the hub warns if they fail or if nothing uses them (lifecycle 12, question 4). */
export const CREDENTIALS = ["maas_token", "power", "power_override"] as const;
export const CREDENTIAL_WARNINGS = ["unused", "failing"] as const;

/**
 * The domain events of lifecycle 8.0 each have a description and a schema of their data. A new member of a domain event must be optional, because
 * consumers ignore unknown members.
 */
export const EVENTS = {
  "hub.database.restored": {
    subject: "hub",
    meaning:
      "An operator has restored the hub's database from a backup. Every event after `last_sequence` and before this event is lost, so a consumer reads again what it keeps.",
    data: z.strictObject({ backup_taken_at: z.string(), last_sequence: z.string(), message: z.string() }),
  },
  "node.onboarding.started": {
    subject: "onboardings/{onboarding_id}",
    meaning: "The onboarding was admitted and its first stage begins.",
    data: OnboardingStarted,
  },
  "node.onboarding.completed": {
    subject: "onboardings/{onboarding_id}",
    meaning: "The host is in service; the status `reconciled` means that the hub adopted the observed state.",
    data: OnboardingEnded,
  },
  "node.onboarding.failed": {
    subject: "onboardings/{onboarding_id}",
    meaning: "The onboarding failed and may be retried.",
    data: OnboardingEnded,
  },
  "node.onboarding.manual_intervention_required": {
    subject: "onboardings/{onboarding_id}",
    meaning: "The onboarding failed, and a person must act before it can continue.",
    data: OnboardingEnded,
  },
  "node.onboarding.cancelled": {
    subject: "onboardings/{onboarding_id}",
    meaning: "The onboarding was cancelled, and undone as far as possible.",
    data: OnboardingEnded,
  },
  "node.decommission.started": {
    subject: "decommissions/{decommission_id}",
    meaning: "The drain, release or remove begins.",
    data: DecommissionStarted,
  },
  "node.decommission.completed": {
    subject: "decommissions/{decommission_id}",
    meaning: "The node is retired (drain), its machine is released and off (release), or the node is deleted (remove).",
    data: DecommissionEnded,
  },
  "node.decommission.failed": {
    subject: "decommissions/{decommission_id}",
    meaning: "The drain, release or remove failed and may be retried.",
    data: DecommissionEnded,
  },
  "node.decommission.manual_intervention_required": {
    subject: "decommissions/{decommission_id}",
    meaning: "The drain, release or remove failed, and a person must act before it can continue.",
    data: DecommissionEnded,
  },
  "node.decommission.cancelled": {
    subject: "decommissions/{decommission_id}",
    meaning:
      "The operation was cancelled; a drain or remove restores the node, and a release that MAAS has accepted is not undone.",
    data: DecommissionEnded,
  },
  ...OPERATION_EVENTS,
  "node.allocation.started": {
    subject: "allocations/{allocation_id}",
    meaning:
      "A node was allocated to a tenant, or the account is made again; the agent is to make the tenant's account.",
    data: AllocationChanged,
  },
  "node.allocation.active": {
    subject: "allocations/{allocation_id}",
    meaning: "The tenant can log in.",
    data: AllocationChanged,
  },
  "node.allocation.failed": {
    subject: "allocations/{allocation_id}",
    meaning: "The tenant's account could not be made; an operator grants it again or releases the allocation.",
    data: AllocationChanged,
  },
  "node.allocation.ending": {
    subject: "allocations/{allocation_id}",
    meaning: "The allocation was released, or its planned end has passed; the node is cleaned after the tenant.",
    data: AllocationChanged,
  },
  "node.allocation.ended": {
    subject: "allocations/{allocation_id}",
    meaning: "The tenant's account is gone from the host, or the host's system is gone.",
    data: AllocationChanged,
  },
  "node.allocation.changed": {
    subject: "allocations/{allocation_id}",
    meaning: "A person has changed the labels of an allocation.",
    data: AllocationChanged,
  },
  "node.allocation.power": {
    subject: "allocations/{allocation_id}",
    meaning:
      "The power of an instance's machine is switched by request, or the request came to its end; `message` has the reason.",
    data: PowerChanged,
  },
  "node.power.changed": {
    subject: "nodes/{node_id}",
    meaning:
      "The power of a machine without a tenant is switched by request, or the request came to its end; `message` has the reason.",
    data: PowerChanged,
  },
  "node.status.changed": {
    subject: "nodes/{node_id}",
    meaning: "The node's coarse status changed.",
    data: z.strictObject({
      node_id: z.string(),
      hostname: z.string(),
      from: z.enum(NODE_STATUSES),
      to: z.enum(NODE_STATUSES),
      owner: z.string(),
    }),
  },
  "node.cordon.changed": {
    subject: "nodes/{node_id}",
    meaning: "An operation or a person has cordoned a node, or has lifted its cordon.",
    data: z.strictObject({
      node_id: z.string(),
      hostname: z.string(),
      cordoned: z.boolean(),
      by: z.string(),
      reason: z.string(),
    }),
  },
  "node.health_override.set": {
    subject: "nodes/{node_id}",
    meaning:
      "A health override keeps new work off the node; `needed_erase` is the weakest disk erase that lifts it, or null if an erase does not lift it.",
    data: z.strictObject({
      ...healthOverride,
      target: z.string().nullable(),
      needed_erase: z.enum(["quick", "secure"]).nullable(),
      expires_at: z.string().nullable().optional(),
    }),
  },
  "node.health_override.lifted": {
    subject: "nodes/{node_id}",
    meaning:
      "A health override is gone: a person removed it, its cause or its time is over, or the host has a new node that has the override now.",
    data: z.strictObject(healthOverride),
  },
  "node.adopted": {
    subject: "nodes/{node_id}",
    meaning:
      "A running machine of MAAS has become a node without a deploy. `differences` names what differs between the machine and its profile.",
    data: z.strictObject({ ...ofMachine, by: z.string(), differences: z.array(z.enum(ADOPTION_DIFFERENCES)) }),
  },
  "node.adoption.refused": {
    subject: "nodes/{node_id}",
    meaning:
      "The agent of an adopted node runs on another host than the node's machine. The agent's certificate is void, and the node waits for the right host.",
    data: z.strictObject({ ...ofMachine, message: z.string() }),
  },
  "node.machine.bound": {
    subject: "nodes/{node_id}",
    meaning:
      "A node of manual mode has been bound to its machine in MAAS. `differences` names what differs between the machine, the host and the node's profile and SKU.",
    data: z.strictObject({ ...ofMachine, by: z.string(), differences: z.array(z.enum(ADOPTION_DIFFERENCES)) }),
  },
  "node.machine.unbound": {
    subject: "nodes/{node_id}",
    meaning: "A node is of manual mode again, and has no machine in MAAS.",
    data: z.strictObject({ ...ofMachine, by: z.string(), reason: z.string() }),
  },
  "node.drift.detected": {
    subject: "nodes/{node_id}",
    meaning:
      "A node and its machine in MAAS differ. `action` is what Muster does about the difference; `held_back` is the reason if Muster does nothing.",
    data: z.strictObject({
      ...drift,
      severity: DriftSeverity,
      action: DriftAction,
      maas_status: z.string(),
      expected: z.string(),
      message: z.string(),
      held_back: z.string().nullable(),
    }),
  },
  "node.drift.resolved": {
    subject: "nodes/{node_id}",
    meaning:
      "The node's drift is over; `how` says that the drift `healed` without a person, or was `acknowledged` or `returned_to_service` by a person.",
    data: z.strictObject({ ...drift, how: z.enum(["healed", "acknowledged", "returned_to_service"]) }),
  },
  "node.roce.incomplete": {
    subject: "nodes/{node_id}",
    meaning: "The node was provisioned without all addresses of its host's RoCE rows.",
    data: z.strictObject({
      node_id: z.string(),
      hostname: z.string(),
      /** One of the ids `onboarding_id` and `decommission_id` is null, because either an onboarding or a reimage provisioned the node. */
      onboarding_id: z.string().nullable(),
      decommission_id: z.string().nullable(),
      assignments: z.int(),
      applied: z.int(),
      problems: z.array(z.string()),
      bars_scheduling: z.boolean(),
    }),
  },
  "node.identity.barred": {
    subject: "nodes/{node_id}",
    meaning: "Two hosts used one node's identity; the hub refuses both until an operator re-enrolls the node.",
    data: z.strictObject({
      node_id: z.string(),
      hostname: z.string(),
      evidence: z.enum(CLONE_EVIDENCE_CODES),
      quarantined: z.boolean(),
      message: z.string(),
    }),
  },
  "node.identity.restored": {
    subject: "nodes/{node_id}",
    meaning: "A node has enrolled again after two hosts had used its identity.",
    data: z.strictObject({ node_id: z.string(), hostname: z.string(), evidence: z.enum(CLONE_EVIDENCE_CODES) }),
  },
  ...BATCH_EVENTS,
  "site.breaker.tripped": {
    subject: "maas-sites/{site_id}",
    meaning:
      "Too many nodes of a site would change status at once, so none did; a person must check the nodes and reset the breaker.",
    data: z.strictObject({
      site_id: z.string(),
      kind: BreakerKind,
      severity: DriftSeverity,
      would_move: z.int(),
      moved: z.int(),
      in_service: z.int(),
      message: z.string(),
    }),
  },
  "site.breaker.reset": {
    subject: "maas-sites/{site_id}",
    meaning: "A person has reset a site's breaker; with `accept_drift` the breaker stops nothing for a while.",
    data: z.strictObject({ site_id: z.string(), kind: BreakerKind, by: z.string(), accept_drift: z.boolean() }),
  },
  "site.credential.warning": {
    subject: "maas-sites/{site_id}",
    meaning:
      "A secret of the site does not work, or the BMC login of one host was unused for 30 days; sent once until it is corrected.",
    data: z.strictObject({
      site_id: z.string(),
      credential: z.enum(CREDENTIALS),
      override_id: z.string().nullable(),
      reason: z.enum(CREDENTIAL_WARNINGS),
      message: z.string(),
    }),
  },
  "authority.rotation.changed": {
    subject: "authority",
    meaning: "A rotation of the hub's CA and order key was announced to hosts, came into force, or was aborted.",
    data: z.strictObject({
      generation: z.int(),
      sequence: z.int(),
      phase: z.enum(ROTATION_PHASES),
    }),
  },
  "signal_sender.changed": {
    subject: "signal-senders/{sender_id}",
    meaning: "A signal sender was created, got a new secret, or was revoked.",
    data: z.strictObject({ sender_id: z.string(), name: z.string(), change: SenderChange, by: z.string() }),
  },
  "token.changed": {
    subject: "tokens/{token_id}",
    meaning:
      "A token was created, rotated or revoked, or the hub's first token was restored, or used although other admin tokens exist.",
    data: z.strictObject({
      token_id: z.string(),
      name: z.string(),
      role: z.string(),
      change: z.enum(["created", "rotated", "revoked", "restored", "used"]),
      by: z.string(),
    }),
  },
  ...APPROVAL_EVENTS,
  ...REPAIR_EVENTS,
  ...READINESS_EVENTS,
  "webhook.tested": {
    subject: "webhooks/{webhook_id}",
    meaning: "An operator asked for a test delivery; only that webhook gets it.",
    data: z.strictObject({ webhook_id: z.string() }),
  },
} as const;

export type EventType = keyof typeof EVENTS;
export type EventData<T extends EventType> = z.input<(typeof EVENTS)[T]["data"]>;
export const EVENT_TYPES = Object.keys(EVENTS) as EventType[];

/**
 * A pattern selects event types for a webhook or a list of events. A pattern is an event type, or the beginning of event types followed by `*`, for
 * example `node.onboarding.*`. As a webhook's pattern, `*` alone selects all event types except the frequent ones.
 */
export const EventPattern = z
  .string()
  .max(100)
  .refine((pattern) => EVENT_TYPES.some((type) => matchesPattern(pattern, type)), {
    message: "matches no event type; docs/events.md lists them",
  });

export const matchesPattern = (pattern: string, type: string): boolean =>
  pattern === "*" || pattern === type || (pattern.endsWith(".*") && type.startsWith(pattern.slice(0, -1)));
