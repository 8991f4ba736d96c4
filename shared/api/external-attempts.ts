import { z } from "zod";
import { ExternalStatus, NETWORK_OWNERS } from "../external-attempt.ts";
import { ExternalAttemptId, NodeId, ProfileId, SiteId } from "../ids.ts";
import { PROVISIONERS } from "../onboarding-mode.ts";
import { Reason } from "./decommissions.ts";
import { LocationGiven } from "./locations.ts";
import { Hostname, InterfaceName, IpAddress, Timestamp } from "./values.ts";

const line = (most: number) =>
  z
    .string()
    .min(1)
    .max(most)
    .regex(/^\P{Cc}*$/u, "must hold no control characters");

/** What an external system says about a host that it has provisioned. */
export const ExternalFacts = z.strictObject({
  host: z
    .union([IpAddress, line(253)])
    .describe("Address or name by which users and probes reach the host")
    .optional(),
  os: z.strictObject({ name: line(64), version: line(64).optional(), kernel: line(128).optional() }).optional(),
  addresses: z
    .array(z.strictObject({ address: IpAddress, interface: InterfaceName.optional() }))
    .max(64)
    .optional(),
  boot_id: line(64).optional(),
  provisioned_at: Timestamp.describe("When the host was provisioned, if that was not now").optional(),
});
export type ExternalFacts = z.output<typeof ExternalFacts>;

const Provisioner = line(128).describe("What the external system is called, e.g. foreman-eu");

const ABOUT_HOST = {
  hostname: Hostname,
  site_id: SiteId.nullable().default(null),
  sku_id: z.string().min(1).max(128),
  region_code: z.string().min(1).max(64),
  location: LocationGiven.optional(),
  profile_id: ProfileId.nullable()
    .describe("The profile whose readiness policy the host must meet; it belongs to the site")
    .default(null),
  provisioner: Provisioner,
  network_owned_by: z
    .enum(NETWORK_OWNERS)
    .describe("Who runs the host's network: an operator's own system, or Muster")
    .default("operator"),
  agent: z
    .enum(["none", "muster"])
    .describe("Whether the host will run the agent of Muster; without it, other sources report its conditions")
    .default("muster"),
  ready_within_seconds: z
    .int()
    .min(60)
    .max(604_800)
    .describe("How long after its completion the host may take to become ready")
    .default(1_800),
};

/**
 * The begin of an attempt. If the site has no node with the hostname in the request, the request to begin an attempt to provision a host creates the
 * node.
 */
export const ExternalBegin = z.strictObject({
  ...ABOUT_HOST,
  lease_seconds: z.int().min(60).max(86_400).describe("The longest silence of the external system").default(900),
  deadline_seconds: z.int().min(300).max(604_800).describe("The longest time until the completion").default(14_400),
});
export type ExternalBegin = z.output<typeof ExternalBegin>;

/** A host that an external system provisioned earlier. */
export const ExternalAdopt = z.strictObject({ ...ABOUT_HOST, facts: ExternalFacts });
export type ExternalAdopt = z.output<typeof ExternalAdopt>;

export const ExternalProgress = z.strictObject({
  step: line(128).describe("What the external system does now"),
  percent: z.int().min(0).max(100).optional(),
});
export const ExternalComplete = z.strictObject({ facts: ExternalFacts.default({}) });
export const ExternalFail = z.strictObject({
  code: z.string().regex(/^[a-z][a-z0-9_]{0,63}$/, "must be lower-case letters, digits and underscores, 64 at most"),
  message: line(1_024),
});
export const ExternalAbandon = z.strictObject({ reason: Reason });

export const ExternalAttempt = z.strictObject({
  id: ExternalAttemptId,
  node_id: NodeId,
  hostname: z.string(),
  site_id: SiteId.nullable(),
  number: z.int(),
  /** True if a newer attempt to provision the node has begun, so that the hub stores reports about this attempt and never applies them. */
  superseded: z.boolean(),
  generation: z.int(),
  provisioner: z.string(),
  provisioned_by: z.enum(PROVISIONERS),
  network_owned_by: z.enum(NETWORK_OWNERS),
  agent: z.enum(["none", "muster"]),
  holder: z.string(),
  status: ExternalStatus,
  step: z.string().nullable(),
  percent: z.int().nullable(),
  /** Why the attempt has its status. */
  reason: z.string(),
  failure_code: z.string().nullable(),
  next_action: z.string().nullable(),
  begun_at: Timestamp,
  reported_at: Timestamp,
  changed_at: Timestamp,
  /** Until when the external system must send its next report about the attempt; null if the attempt waits for no report. */
  lease_expires_at: Timestamp.nullable(),
  /**
   * Until when an external attempt to provision a host waits for its completion, or after the completion for the host's readiness; null if the
   * attempt waits for neither.
   */
  deadline_at: Timestamp.nullable(),
  provisioned_at: Timestamp.nullable(),
  facts: ExternalFacts.nullable(),
  late_reports: z.int(),
  last_late_report: z.string().nullable(),
});
export const ExternalAttemptDetail = z.strictObject({
  ...ExternalAttempt.shape,
  /** What the node still lacks to become ready, as sentences. */
  waiting_for: z.array(z.string()),
});

export const ExternalBegun = z.strictObject({
  attempt: ExternalAttempt,
  /** The command that installs the agent on the host, shown once; null for a host without the agent. */
  bootstrap_command: z.string().nullable(),
  expires_at: Timestamp.nullable(),
});

export const ExternalReported = z.strictObject({
  /**
   * `repeated`: the report had its effect before. `kept`: a newer attempt to provision the host has begun, so the hub stores the report about the
   * older attempt and changes nothing else.
   */
  outcome: z.enum(["applied", "repeated", "kept"]),
  detail: z.string(),
  attempt: ExternalAttempt,
});

/** All hosts that an external system has now, as the external system lists them. */
export const ExternalInventory = z.strictObject({
  provisioner: Provisioner,
  site_id: SiteId.nullable().default(null),
  hosts: z
    .array(
      z.strictObject({
        hostname: Hostname,
        state: z.enum(["provisioning", "provisioned", "failed"]),
        facts: ExternalFacts.optional(),
      }),
    )
    .max(500)
    .refine((hosts) => new Set(hosts.map(({ hostname }) => hostname)).size === hosts.length, "names a host twice"),
  whole: z
    .boolean()
    .describe(
      "Whether these are all hosts of the system at the site; a part says nothing about hosts that it does not name",
    )
    .default(true),
  apply: z
    .boolean()
    .describe("Record completions and failures that the hub has not heard of; without it, only compare")
    .default(false),
});

export const EXTERNAL_FINDINGS = [
  "agrees",
  "completion_unheard",
  "failure_unheard",
  "no_attempt_open",
  "not_provisioned",
  "unknown_to_hub",
  "not_external",
  "unknown_to_provisioner",
] as const;
export const ExternalFinding = z.enum(EXTERNAL_FINDINGS);
export type ExternalFinding = z.output<typeof ExternalFinding>;

export const ExternalReconciled = z.strictObject({
  applied: z.int(),
  hosts: z.array(
    z.strictObject({
      hostname: z.string(),
      finding: ExternalFinding,
      attempt_id: ExternalAttemptId.nullable(),
      applied: z.boolean(),
      message: z.string(),
      next_action: z.string().nullable(),
    }),
  ),
});
