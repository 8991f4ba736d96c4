import { z } from "zod";
import { AllocationStatus } from "../allocation-status.ts";
import { AllocationId, NodeId, SiteId, SshKeyGroupId, SshKeyId, TaskId, WorkflowId } from "../ids.ts";
import { KeySyncStatus } from "../key-sync.ts";
import { LoginUser } from "../linux-user.ts";
import { HealthIssue } from "../repair.ts";
import { MOST_KEYS_OF_AN_ACCOUNT, SshPublicKey } from "../ssh-key.ts";
import { Reason } from "./decommissions.ts";
import { SkuId } from "./sites.ts";
import { Timestamp } from "./values.ts";

/** Muster compares tenants' names only as whole texts. */
export const Tenant = z
  .string()
  .min(1)
  .max(128)
  .regex(/^\P{Cc}*$/u, "must hold no control characters");

const MOST_LABELS = 32;
const labelKey = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$/, "must be letters, digits, '.', '_', '/' and '-', 63 at most");
/** The operator's own notes about an allocation, for example the order of a customer. No decision of Muster depends on an allocation's label. */
export const Labels = z
  .record(
    labelKey,
    z
      .string()
      .max(256)
      .regex(/^\P{Cc}*$/u, "must hold no control characters"),
  )
  .refine((labels) => Object.keys(labels).length <= MOST_LABELS, `must have ${MOST_LABELS} labels at most`);

const Note = (most: number) =>
  z
    .string()
    .min(1)
    .max(most)
    .regex(/^\P{Cc}*$/u, "must hold no control characters");
const TwoForms = "give either node_id, or sku_id and site_id";
const NoKeys = "give at least one key, or name keys or groups of the tenant by ssh_key_ids or ssh_key_group_ids";
const TwoKinds = "give the keys themselves, or name stored keys and groups, and not both";

type NamedKeys = Readonly<Record<"ssh_keys" | "ssh_key_ids" | "ssh_key_group_ids", readonly unknown[]>>;

/** A tenant's account gets either the SSH keys that the request contains, or those of stored keys and groups, and never both. */
export function mustNameKeys({ ssh_keys, ssh_key_ids, ssh_key_group_ids }: NamedKeys, context: z.RefinementCtx): void {
  const stored = ssh_key_ids.length + ssh_key_group_ids.length > 0;
  if (stored === ssh_keys.length > 0)
    context.addIssue({ code: "custom", path: ["ssh_keys"], message: stored ? TwoKinds : NoKeys });
}

/** A request for an allocation (architecture 14.1) names a node, or an SKU and a site. For an SKU and a site, the hub chooses a free node. */
export const AllocationCreate = z
  .strictObject({
    node_id: NodeId.describe(
      "The node to allocate; or give --sku-id and --site-id, and the hub takes a free node",
    ).optional(),
    sku_id: SkuId.optional(),
    site_id: SiteId.optional(),
    tenant: Tenant.describe("Name of the customer or project that gets the node"),
    login_user: LoginUser.describe("Account that the agent makes on the host"),
    ssh_keys: z
      .array(SshPublicKey)
      .max(MOST_KEYS_OF_AN_ACCOUNT)
      .describe("Public keys for the account, e.g. @id_ed25519.pub; they never change")
      .default([]),
    ssh_key_ids: z
      .array(SshKeyId)
      .max(MOST_KEYS_OF_AN_ACCOUNT)
      .describe("Stored keys of the tenant, in place of --ssh-keys")
      .default([]),
    ssh_key_group_ids: z
      .array(SshKeyGroupId)
      .max(MOST_KEYS_OF_AN_ACCOUNT)
      .describe("Key groups of the tenant, in place of --ssh-keys; the account follows their changes")
      .default([]),
    root: z
      .boolean()
      .describe(
        "The account may run every command as root; the node is then reimaged after the tenant, unless its profile has soft_reset_after_root",
      )
      .default(false),
    name: Note(256).describe("The tenant's own name for the instance; none: its hostname").nullable().default(null),
    description: Note(1_024).describe("The tenant's own words about the instance").nullable().default(null),
    labels: Labels.describe('Your own notes, e.g. {"order": "4711"}').default({}),
    allow_unhealthy_machine: z
      .boolean()
      .describe(
        "Take the named node although a health override keeps tenants off it; needs the right allocate_unhealthy",
      )
      .default(false),
    ends_at: Timestamp.nullable()
      .describe("When the hub ends the allocation by itself; none: an operator releases it")
      .default(null),
  })
  .superRefine((asked, context) => {
    const { node_id, sku_id, site_id, allow_unhealthy_machine } = asked;
    if (allow_unhealthy_machine && node_id === undefined)
      context.addIssue({ code: "custom", path: ["allow_unhealthy_machine"], message: "needs node_id" });
    mustNameKeys(asked, context);
    const named = node_id !== undefined;
    if (named !== (sku_id === undefined) || named !== (site_id === undefined))
      context.addIssue({ code: "custom", path: ["node_id"], message: TwoForms });
  });
export type AllocationCreate = z.output<typeof AllocationCreate>;

/** The API's list of allocations leaves out the tenants' SSH keys; only the answer about a single allocation contains them. */
export const Allocation = z.strictObject({
  id: AllocationId,
  node_id: NodeId,
  hostname: z.string(),
  site_id: SiteId.nullable(),
  tenant: z.string(),
  login_user: z.string(),
  root: z.boolean(),
  /** What gave the tenant's account the rights of root although the operator did not grant them, for example `group docker`. */
  root_by: z.array(z.string()),
  name: z.string().nullable(),
  description: z.string().nullable(),
  labels: z.record(z.string(), z.string()),
  /** True if the request accepted a node that health overrides keep from tenants; `unhealthy_because` has the sources of those overrides. */
  allow_unhealthy_machine: z.boolean(),
  unhealthy_because: z.array(z.string()),
  status: AllocationStatus,
  error_code: z.string().nullable(),
  error_message: z.string().nullable(),
  next_action: z.string().nullable(),
  /** The task `grant_task_id` makes the tenant's account, and the decommission `decommission_id` cleans the node after the tenant. */
  grant_task_id: TaskId.nullable(),
  decommission_id: WorkflowId.nullable(),
  created_by: z.string(),
  created_at: Timestamp,
  active_at: Timestamp.nullable(),
  ends_at: Timestamp.nullable(),
  ended_at: Timestamp.nullable(),
  end_reason: z.string().nullable(),
  end_forced: z.boolean(),
});
export type Allocation = z.output<typeof Allocation>;
export const AllocationDetail = z.strictObject({
  ...Allocation.shape,
  /** The SSH keys in the hub's last order to the agent for the tenant's account. */
  ssh_keys: z.array(z.string()),
  ssh_key_ids: z.array(SshKeyId),
  ssh_key_group_ids: z.array(SshKeyGroupId),
  /**
   * Whether the tenant's account has the stored SSH keys that the allocation names; null if the request contained the keys themselves, which never
   * change.
   */
  key_sync: z.strictObject({ status: KeySyncStatus, reason: z.string().nullable() }).nullable(),
});
export type AllocationDetail = z.output<typeof AllocationDetail>;

export const NodeAllocation = z.strictObject({ id: AllocationId, tenant: z.string(), status: AllocationStatus });

/**
 * The release of an allocation may say that the machine is faulty, and the release of a repairer's allocation may say how the repair ended. The names
 * of the fields in a request to release an allocation come from NVIDIA NICo's API (repair 1).
 */
export const AllocationRelease = z.strictObject({
  reason: Reason,
  machine_health_issue: HealthIssue.describe(
    "What is wrong with the machine; it then takes no tenant until its repair is closed",
  ).optional(),
  is_repair_tenant: z
    .boolean()
    .describe("Whether the allocation is the access of a claimed repair; the hub refuses a wrong claim")
    .optional(),
  repair_status: z
    .string()
    .max(64)
    .describe("For the access of a repair: Completed, Failed or InProgress; everything else counts as no success")
    .optional(),
});

export const AllocationVerb = z.strictObject({ reason: Reason });
