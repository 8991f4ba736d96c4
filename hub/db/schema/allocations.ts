import { ALLOCATION_STATUSES } from "../../../shared/allocation-status.ts";
import type { AllocationId, NodeId, SiteId, SshKeyGroupId, SshKeyId, TaskId, WorkflowId } from "../../../shared/ids.ts";
import { boolean, check, index, integer, jsonb, pgTable, sql, text, uniqueIndex, uuid } from "../orm.ts";
import { at, createdAt, oneOf } from "./columns.ts";

/** Only the function `moveAllocation` changes an allocation's status. An ended allocation stays as the node's history. */
export const allocations = pgTable(
  "allocations",
  {
    id: uuid("id").$type<AllocationId>().primaryKey().default(sql`gen_random_uuid()`),
    /** The column `node_id` has no foreign key, because the record of the allocation outlives the node. */
    nodeId: uuid("node_id").$type<NodeId>().notNull(),
    siteId: uuid("site_id").$type<SiteId>(),
    hostname: text("hostname").notNull(),
    /**
     * The generation of the system with the tenant's account: the node's when the allocation was made, or that of the last reinstall. After MAAS released
     * the machine in the allocation's generation or in a later one, the tenant's account no longer exists.
     */
    generation: integer("generation").notNull(),
    /**
     * The newest generation whose system a reinstall has released since the allocation was made; null without one. No later change lowers or removes
     * `reinstalled_generation`.
     */
    reinstalledGeneration: integer("reinstalled_generation"),
    /**
     * The serial numbers of the disks in the snapshots of the clean host from before the allocation's reinstalls, because a disk that is missing
     * since then still has the tenant's data.
     */
    disksBefore: text("disks_before").array().notNull().default(sql`'{}'`),
    tenant: text("tenant").notNull(),
    loginUser: text("login_user").notNull(),
    /**
     * The SSH keys that the hub last ordered the agent to install for the allocation. An SSH key identifies a person, so no log and no event contains
     * an SSH key.
     */
    sshKeys: text("ssh_keys").array().notNull(),
    /** The stored SSH keys and key groups that the allocation names. If the allocation names no stored keys or groups, `ssh_keys` never changes. */
    sshKeyIds: uuid("ssh_key_ids").array().$type<SshKeyId[]>().notNull().default(sql`'{}'`),
    sshKeyGroupIds: uuid("ssh_key_group_ids").array().$type<SshKeyGroupId[]>().notNull().default(sql`'{}'`),
    /**
     * True if the named SSH keys may differ from `ssh_keys`; the hub's periodic check of allocations then orders the agent to install the named keys.
     */
    keysDue: boolean("keys_due").notNull().default(false),
    /**
     * The task that brings changed SSH keys to the account of an active allocation. If the task `keys_task_id`, which installs the changed SSH keys,
     * succeeds, its id becomes the allocation's `grant_task_id`.
     */
    keysTaskId: uuid("keys_task_id").$type<TaskId>(),
    grantsRoot: boolean("grants_root").notNull(),
    /** The ways by which the tenant's account could become root, as the agent found them, for example `group docker`. */
    rootBy: text("root_by").array().notNull().default(sql`'{}'`),
    /** The tenant's own name and description of the instance; Muster decides nothing by them. */
    name: text("name"),
    description: text("description"),
    labels: jsonb("labels").$type<Readonly<Record<string, string>>>().notNull(),
    /** Whether the request allowed a machine that health overrides keep from new tenants, and the sources of these overrides at the request. */
    allowUnhealthyMachine: boolean("allow_unhealthy_machine").notNull().default(false),
    unhealthyBecause: text("unhealthy_because").array().notNull().default(sql`'{}'`),
    status: text("status", { enum: ALLOCATION_STATUSES }).notNull(),
    errorCode: text("error_code"),
    errorMessage: text("error_message"),
    /**
     * The reason why the hub could not continue the allocation at its last periodic try. The hub sets `problem` to null when the allocation's status
     * changes, or when the operation that cleans the host after the tenant changes.
     */
    problem: text("problem"),
    grantTaskId: uuid("grant_task_id").$type<TaskId>(),
    /** The operation that cleans the node after the tenant; null until that operation has begun. */
    decommissionId: uuid("decommission_id").$type<WorkflowId>(),
    createdBy: text("created_by").notNull(),
    createdAt: createdAt(),
    activeAt: at("active_at"),
    /** The allocation's planned end, at which the hub ends the allocation by itself. */
    endsAt: at("ends_at"),
    endedAt: at("ended_at"),
    endReason: text("end_reason"),
    endForced: boolean("end_forced").notNull().default(false),
  },
  (t) => [
    check("allocations_status_check", oneOf("status", ALLOCATION_STATUSES)),
    check("allocations_ended_check", sql`("status" = 'ended') = ("ended_at" is not null)`),
    uniqueIndex("allocations_open_node_key").on(t.nodeId).where(sql`"status" <> 'ended'`),
    // The hub's periodic check of allocations finds those that have not ended by the index `allocations_open_status_idx`.
    index("allocations_open_status_idx").on(t.status).where(sql`"status" <> 'ended'`),
    index("allocations_keys_idx")
      .on(t.id)
      .where(sql`"status" = 'active' and ("keys_due" or "keys_task_id" is not null)`),
    index("allocations_node_idx").on(t.nodeId, t.createdAt),
    index("allocations_created_idx").on(t.createdAt, t.id),
    index("allocations_age_idx").on(t.endedAt).where(sql`"ended_at" is not null`),
  ],
);
export type AllocationRow = typeof allocations.$inferSelect;
