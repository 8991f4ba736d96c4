import { z } from "zod";
import { CONDITION_CLASSES } from "../condition-types.ts";
import { NETWORK_OWNERS } from "../external-attempt.ts";
import { NodeId, ProfileId, SiteId } from "../ids.ts";
import { Inventory } from "../inventory.ts";
import { NodeStatus } from "../node-status.ts";
import { ONBOARDING_MODES, PROVISIONERS } from "../onboarding-mode.ts";
import { ConditionStatus } from "../readiness.ts";
import { Lack, ReadinessPolicy } from "../readiness-policy.ts";
import { NodeAdoption } from "./adoptions.ts";
import { NodeAllocation } from "./allocations.ts";
import { BaselineState } from "./baselines.ts";
import { Reason } from "./decommissions.ts";
import { HealthOverride } from "./health-overrides.ts";
import { AssetTag, LocationGiven, NodeLocation } from "./locations.ts";
import { Hostname, Timestamp } from "./values.ts";

const NodeCondition = z.strictObject({
  type: z.string(),
  /** What the condition's type means for the node: it keeps work off, it asks a person to look, or it only informs. */
  class: z.enum(CONDITION_CLASSES),
  status: ConditionStatus,
  reason: z.string(),
  message: z.string(),
  generation: z.int(),
  source: z.string(),
  observed_at: Timestamp,
  /** When the newest report of the condition reached the hub, and when the condition got its present status, both by the database's clock. */
  received_at: Timestamp,
  changed_at: Timestamp,
  expires_at: Timestamp.nullable(),
});

export const NodeSummary = z.strictObject({
  id: NodeId,
  hostname: z.string(),
  host: z.string().nullable(),
  port: z.int(),
  site_id: SiteId.nullable(),
  location: NodeLocation,
  /** The host's number in the inventory of its owner; null if no operator has entered it. */
  asset_tag: z.string().nullable(),
  region_code: z.string(),
  sku_id: z.string(),
  gpus_total: z.int(),
  status: NodeStatus,
  /** The hub computes a node's field `schedulable` when it needs it, and never stores it (architecture 3). */
  schedulable: z.boolean(),
  unschedulable_reasons: z.array(z.string()),
  /** The owner of a cordon is `operation:<id>` or `operator:<name>`. */
  cordon_reason: z.string().nullable(),
  cordon_owner: z.string().nullable(),
  /** The node's open allocation, or null if the node has none. */
  allocation: NodeAllocation.nullable(),
  onboarding_mode: z.enum(ONBOARDING_MODES),
  provisioned_by: z.enum(PROVISIONERS),
  network_owned_by: z.enum(NETWORK_OWNERS),
  /** `runs_agent` is false for a host on which no agent runs, so that other sources than an agent report its conditions. */
  runs_agent: z.boolean(),
  maas_system_id: z.string().nullable(),
  generation: z.int(),
  last_agent_contact_at: Timestamp.nullable(),
  agent_version: z.string().nullable(),
  created_at: Timestamp,
  updated_at: Timestamp,
});
export type NodeSummary = z.output<typeof NodeSummary>;

export const NodeList = z.strictObject({
  items: z.array(NodeSummary),
  next_cursor: z.string().nullable(),
  /** The number of nodes on all pages of the list; null if the request did not ask for it. */
  total: z.int().nullable(),
});

/**
 * A person's request to change the location or the asset tag of a node. A location replaces the whole earlier location, and `{}` says that the
 * location is not known.
 */
export const NodePatch = z.strictObject({
  location: LocationGiven.optional(),
  asset_tag: AssetTag.nullable()
    .describe("The number of the host in the inventory of its owner; null removes it")
    .optional(),
});

const NodeEvent = z.strictObject({
  id: z.string(),
  type: z.string(),
  from_status: NodeStatus.nullable(),
  to_status: NodeStatus.nullable(),
  owner: z.string(),
  message: z.string(),
  occurred_at: Timestamp,
});

/** A condition that keeps the node from being ready. */
const LackingCondition = z.strictObject({
  type: z.string(),
  wants: z.enum(["True", "False"]),
  kind: Lack,
  /** The place of the condition's group in the readiness policy, from 0 on; null for a condition that every node must have. */
  group: z.int().nullable(),
  group_kind: z.enum(["all", "any"]).nullable(),
  status: ConditionStatus.nullable(),
  reason: z.string().nullable(),
  message: z.string(),
  since: Timestamp,
  /**
   * The time after which the hub judges the condition anew although no report came: a missing condition is then overdue, and a flapping condition is
   * stable; null if only a report can change the condition.
   */
  until: Timestamp.nullable(),
  next_action: z.string(),
});

/** Whether the node's conditions let it take work. A ready node may still be cordoned, allocated or out of service, as `schedulable` says. */
const NodeReadiness = z.strictObject({
  ready: z.boolean(),
  /**
   * The readiness policy of the node's profile. For a node without a profile, `groups` of the readiness policy is empty, and `profile_id` and
   * `profile_name` are null.
   */
  policy: z.strictObject({
    profile_id: ProfileId.nullable(),
    profile_name: z.string().nullable(),
    groups: ReadinessPolicy,
  }),
  generation_began_at: Timestamp,
  lacking: z.array(LackingCondition),
});

export const NodeDetail = z.strictObject({
  ...NodeSummary.shape,
  readiness: NodeReadiness,
  conditions: z.array(NodeCondition),
  health_overrides: z.array(HealthOverride),
  inventory: Inventory.nullable(),
  /**
   * The node's baseline is the snapshot of the host from before the first tenant. Without such a snapshot from before the first tenant (baseline),
   * the hub never judges the node clean after a tenant.
   */
  baseline: BaselineState,
  /** The node's adoption; null for a node that an onboarding made, or that belongs to no machine in MAAS. */
  adoption: NodeAdoption.nullable(),
  maas: z
    .strictObject({
      status: z.string(),
      power_state: z.string(),
      ip_addresses: z.array(z.string()),
      last_sync: Timestamp.nullable(),
      next_sync: Timestamp.nullable(),
      observed_at: Timestamp,
      /** What identifies the machine's hardware and its place in MAAS; null if an older hub, which did not read these values, stored the machine. */
      hardware: z
        .strictObject({
          uuid: z.string().nullable(),
          serial: z.string().nullable(),
          board_serial: z.string().nullable(),
          chassis_serial: z.string().nullable(),
          firmware_version: z.string().nullable(),
          zone: z.string(),
          pool: z.string(),
          tags: z.array(z.string()),
        })
        .nullable(),
    })
    .nullable(),
  events: z.array(NodeEvent),
});
export type NodeDetail = z.output<typeof NodeDetail>;

/**
 * The request for a node that MAAS does not provision: its owner installs the host by hand (lifecycle 2.1). A host that MAAS provisions gets its node
 * by an onboarding instead.
 */
export const NodeCreate = z.strictObject({
  onboarding_mode: z.literal("manual"),
  hostname: Hostname,
  sku_id: z.string().min(1).max(128),
  region_code: z.string().min(1).max(64),
  site_id: SiteId.nullable().default(null),
  location: LocationGiven.optional(),
  token_ttl_seconds: z.int().min(300).max(604_800).default(3600),
});
export type NodeCreate = z.output<typeof NodeCreate>;

/**
 * The bootstrap command that a person runs as root on the host. The bootstrap command contains the enrollment token, so the hub shows the command
 * only once and stores it nowhere.
 */
export const BootstrapCommand = z.strictObject({
  node_id: NodeId,
  bootstrap_command: z.string(),
  expires_at: Timestamp,
});
export type BootstrapCommand = z.output<typeof BootstrapCommand>;

export const BootstrapCommandCreate = z.strictObject({
  token_ttl_seconds: z.int().min(300).max(604_800).default(3600),
});

export const NodeReEnroll = z.strictObject({ ...BootstrapCommandCreate.shape, reason: Reason });
