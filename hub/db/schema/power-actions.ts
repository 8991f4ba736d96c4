import type { AllocationId, NodeId, PowerActionId, SiteId } from "../../../shared/ids.ts";
import { POWER_ERRORS, POWER_STATES, POWER_VERBS } from "../../../shared/power.ts";
import { boolean, check, index, integer, pgTable, sql, text, uniqueIndex, uuid } from "../orm.ts";
import { at, oneOf } from "./columns.ts";

/**
 * The requests for the power of machines (decision N10). Only `hub/power` writes them: a request inserts a row, and the sweep moves it to its end. No
 * column is a foreign key, because the record outlives the node.
 */
export const powerActions = pgTable(
  "power_actions",
  {
    id: uuid("id").$type<PowerActionId>().primaryKey().default(sql`gen_random_uuid()`),
    nodeId: uuid("node_id").$type<NodeId>().notNull(),
    hostname: text("hostname").notNull(),
    /** The generation of the node at the request. A host that was installed anew does not follow an older request. */
    generation: integer("generation").notNull(),
    siteId: uuid("site_id").$type<SiteId>().notNull(),
    maasSystemId: text("maas_system_id").notNull(),
    /** The node's open allocation at the request; null for a node without a tenant. */
    allocationId: uuid("allocation_id").$type<AllocationId>(),
    tenant: text("tenant"),
    /** The tenant of the requester's credential, for the claim of a repair; null for people of the provider and for the hub. */
    requesterTenant: text("requester_tenant"),
    /** True for the action by which the hub switches a host on to clean it. Only this one continues while the allocation ends. */
    forCleaning: boolean("for_cleaning").notNull().default(false),
    verb: text("verb", { enum: POWER_VERBS }).notNull(),
    /** True if the power is switched off without a shutdown of the host's system. */
    immediate: boolean("immediate").notNull(),
    state: text("state", { enum: POWER_STATES }).notNull().default("running"),
    requestedBy: text("requested_by").notNull(),
    reason: text("reason").notNull(),
    requestedAt: at("requested_at").notNull().default(sql`now()`),
    deadlineAt: at("deadline_at").notNull(),
    /** The boot of the host at the request; null if its agent had no session. Another boot proves the restart. */
    bootId: text("boot_id"),
    /** The times at which the hub began to ask MAAS for a shutdown, for power off and for power on. The hub writes them before it asks. */
    shutdownAskedAt: at("shutdown_asked_at"),
    /** The time at which MAAS accepted the shutdown, with which the host's time to shut down begins. */
    shutdownAcceptedAt: at("shutdown_accepted_at"),
    offAskedAt: at("off_asked_at"),
    onAskedAt: at("on_asked_at"),
    /** The time at which the BMC first said that the machine is off. */
    offSeenAt: at("off_seen_at"),
    waitReason: text("wait_reason"),
    errorCode: text("error_code", { enum: POWER_ERRORS }),
    errorMessage: text("error_message"),
    finishedAt: at("finished_at"),
    /** The next time at which a hub looks at the action, and until when a hub has it. */
    wakeAt: at("wake_at").notNull().default(sql`now()`),
    claimedUntil: at("claimed_until"),
    /** A number that rises with each claim; a hub whose claim is over writes nothing. */
    fence: integer("fence").notNull().default(0),
  },
  (t) => [
    check("power_actions_verb_check", oneOf("verb", POWER_VERBS)),
    check("power_actions_state_check", oneOf("state", POWER_STATES)),
    check("power_actions_error_check", oneOf("error_code", POWER_ERRORS)),
    check("power_actions_finished_check", sql`("state" = 'running') = ("finished_at" is null)`),
    uniqueIndex("power_actions_running_node_key").on(t.nodeId).where(sql`"state" = 'running'`),
    index("power_actions_node_idx").on(t.nodeId, t.requestedAt),
    index("power_actions_due_idx").on(t.wakeAt).where(sql`"state" = 'running'`),
    index("power_actions_age_idx").on(t.finishedAt).where(sql`"finished_at" is not null`),
  ],
);
export type PowerAction = typeof powerActions.$inferSelect;
