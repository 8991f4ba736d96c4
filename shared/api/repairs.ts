import { z } from "zod";
import { CONDITION_CLASSES } from "../condition-types.ts";
import { AllocationId, NodeId, RepairId, SiteId } from "../ids.ts";
import { LoginUser } from "../linux-user.ts";
import { NodeStatus } from "../node-status.ts";
import {
  HealthIssue,
  HOLD_NAMES,
  REPAIR_ENTRIES,
  REPAIR_OUTCOMES,
  RepairMode,
  RepairStateName,
  ReportedOutcome,
} from "../repair.ts";
import { MOST_KEYS_OF_AN_ACCOUNT, SshPublicKey } from "../ssh-key.ts";
import { Tenant } from "./allocations.ts";
import { Reason } from "./decommissions.ts";
import { NodeLocation } from "./locations.ts";
import { Timestamp } from "./values.ts";

/** A repair case as the API's list shows it. */
export const Repair = z.strictObject({
  id: RepairId,
  node_id: NodeId,
  hostname: z.string(),
  site_id: SiteId.nullable(),
  mode: RepairMode,
  state: RepairStateName,
  /** The time since which the repair case is in its state, for example the age of a request that nobody has claimed. */
  state_since: Timestamp,
  issue: z.strictObject({ ...HealthIssue.shape, details: z.string().nullable() }),
  finding: z.string().nullable(),
  allocation_id: AllocationId.nullable(),
  tenant: z.string().nullable(),
  opened_by: z.string(),
  opened_at: Timestamp,
  attempt: z.int(),
  claimed_by: z.string().nullable(),
  repair_tenant: z.string().nullable(),
  claim_until: Timestamp.nullable(),
  access_allocation_id: AllocationId.nullable(),
  outcome: z.enum(REPAIR_OUTCOMES).nullable(),
  validated_by: z.string().nullable(),
  validated_at: Timestamp.nullable(),
  held_back: z.enum(HOLD_NAMES).nullable(),
  release_on_failure: z.boolean(),
  ended_at: Timestamp.nullable(),
  /** The verbs that the state allows. */
  verbs: z.array(z.string()),
});
export type Repair = z.output<typeof Repair>;

/** What a repair team needs to find the machine of a repair case in the data centre, and to see what is wrong with it. */
const RepairMachine = z.strictObject({
  node_status: NodeStatus,
  sku_id: z.string(),
  location: NodeLocation,
  asset_tag: z.string().nullable(),
  /** The address of the host. */
  host: z.string().nullable(),
  maas_system_id: z.string().nullable(),
  /** The serial numbers and the firmware that MAAS knows; null if MAAS does not know them, or for a node without a machine in MAAS. */
  serial: z.string().nullable(),
  board_serial: z.string().nullable(),
  chassis_serial: z.string().nullable(),
  firmware_version: z.string().nullable(),
  /** The GPUs and disks in the newest inventory of the host's agent. A GPU that has left the PCI bus is not in the inventory. */
  gpus: z.array(
    z.strictObject({ vendor: z.string(), model: z.string(), bus: z.string(), serial: z.string().nullable() }),
  ),
  disks: z.array(z.strictObject({ name: z.string(), model: z.string(), serial: z.string() })),
  /** The barring conditions and warnings of the node's present generation that are not True. */
  faults: z.array(
    z.strictObject({
      type: z.string(),
      class: z.enum(CONDITION_CLASSES),
      status: z.string(),
      reason: z.string(),
      message: z.string(),
      changed_at: Timestamp,
    }),
  ),
});
export type RepairMachine = z.output<typeof RepairMachine>;

export const RepairDetail = z.strictObject({
  ...Repair.shape,
  /** Null after the end of the case, and if the hub no longer has the node. */
  machine: RepairMachine.nullable(),
  /** Whether the host was cleaned after the tenant who reported the fault; unknown without such a tenant, or before the end of the cleaning. */
  sanitized: z.enum(["yes", "no", "unknown"]),
  /** What keeps a repaired machine in repair; empty if the repair case is in another state. */
  failed_checks: z.array(z.strictObject({ code: z.string(), message: z.string(), next_action: z.string() })),
  timeline: z.array(
    z.strictObject({
      at: Timestamp,
      entry: z.enum(REPAIR_ENTRIES),
      attempt: z.int(),
      actor: z.string(),
      message: z.string(),
      details: z.record(z.string(), z.unknown()),
    }),
  ),
});
export type RepairDetail = z.output<typeof RepairDetail>;

export const RepairCreate = z.strictObject({
  node_id: NodeId.describe("The faulty node"),
  machine_health_issue: HealthIssue,
  request: z.boolean().describe("Whether a repair system may claim the machine at once").default(false),
  reason: Reason,
});
export type RepairCreate = z.output<typeof RepairCreate>;

/** The three risks of an online repair that the tenant must accept; they are those of NVIDIA NICo. */
const Acknowledgements = z.strictObject({
  accept_data_corruption_risk: z.literal(true),
  accept_repair_team_access: z.literal(true),
  accept_instance_deletion_risk: z.literal(true),
});

export const OnlineRepairCreate = z.strictObject({
  allocation_id: AllocationId.describe("The active allocation whose tenant keeps the machine"),
  machine_health_issue: HealthIssue,
  acknowledgements: Acknowledgements.describe("What the tenant has accepted; all three must be true"),
  release_on_failure: z
    .boolean()
    .describe("Whether the hub releases the allocation for a full repair if the online repair fails")
    .default(false),
  reason: Reason,
});
export type OnlineRepairCreate = z.output<typeof OnlineRepairCreate>;

export const RepairVerb = z.strictObject({ reason: Reason });
export const RepairRequest = z.strictObject({
  reason: Reason,
  evidence: z
    .string()
    .trim()
    .min(1)
    .max(2048)
    .describe("What is newly known of the fault; needed after an attempt at the machine")
    .optional(),
});

export const RepairClaim = z.strictObject({
  reason: Reason,
  hours: z.int().min(1).max(168).describe("How long the claim lasts; claim again to extend it").default(24),
  access: z
    .strictObject({
      tenant: Tenant.describe("The repair team's name; not needed with a credential of a tenant").optional(),
      login_user: LoginUser,
      ssh_keys: z.array(SshPublicKey).min(1).max(MOST_KEYS_OF_AN_ACCOUNT),
      root: z.boolean().default(false),
    })
    .describe("An account on the host for the time of the attempt, by an allocation")
    .optional(),
});
export type RepairClaim = z.output<typeof RepairClaim>;

export const RepairReport = z.strictObject({
  outcome: ReportedOutcome.describe(
    "What came of the attempt; everything but completed keeps the machine out of service",
  ),
  machine_health_issue: HealthIssue.describe("Another fault that the repair found").optional(),
  reason: Reason.describe("What was done, and what was seen"),
});
export type RepairReport = z.output<typeof RepairReport>;

export const RepairValidation = z.strictObject({
  result: z.enum(["passed", "failed"]),
  reason: Reason.describe("Which tests ran, and what they showed"),
});
