import type { AllocationId, NodeId, PowerActionId, SiteId } from "../../../shared/ids.ts";
import { POWER_ERRORS, POWER_STATES, POWER_VERBS } from "../../../shared/power.ts";
import { boolean, check, index, integer, pgTable, sql, text, uniqueIndex, uuid } from "../orm.ts";
import { at, oneOf } from "./columns.ts";

/**
 * The requests to switch machines on or off or to restart them (decision N10). Only the code in `hub/power` writes power actions: a request inserts a
 * row, and the periodic job in `hub/power/sweep.ts` carries the action out. No column is a foreign key, because the record of a power action outlives
 * the node.
 */
export const powerActions = pgTable(
  "power_actions",
  {
    id: uuid("id").$type<PowerActionId>().primaryKey().default(sql`gen_random_uuid()`),
    nodeId: uuid("node_id").$type<NodeId>().notNull(),
    hostname: text("hostname").notNull(),
    /**
     * The generation of the node at the time of the power request. The hub does not carry out a power request on a host that was installed anew after
     * the request.
     */
    generation: integer("generation").notNull(),
    siteId: uuid("site_id").$type<SiteId>().notNull(),
    maasSystemId: text("maas_system_id").notNull(),
    /** The node's open allocation at the time of the power request; null for a node without a tenant. */
    allocationId: uuid("allocation_id").$type<AllocationId>(),
    tenant: text("tenant"),
    /**
     * The tenant of the requester's credential, which the hub compares with the claimant of a repair; null for people without a tenant and for the
     * hub.
     */
    requesterTenant: text("requester_tenant"),
    /**
     * True for the power action by which the hub switches a host on to clean it. While the node's allocation ends, the hub stops all power actions of
     * the node except the one for the cleaning.
     */
    forCleaning: boolean("for_cleaning").notNull().default(false),
    verb: text("verb", { enum: POWER_VERBS }).notNull(),
    /** True if the power is switched off without a shutdown of the host's system. */
    immediate: boolean("immediate").notNull(),
    state: text("state", { enum: POWER_STATES }).notNull().default("running"),
    requestedBy: text("requested_by").notNull(),
    reason: text("reason").notNull(),
    requestedAt: at("requested_at").notNull().default(sql`now()`),
    deadlineAt: at("deadline_at").notNull(),
    /**
     * The boot id of the host at the time of the power request; null if the host's agent had no session. If the host later reports a different boot
     * id, the hub knows that the host has restarted.
     */
    bootId: text("boot_id"),
    /**
     * The times at which the hub began to ask MAAS for a shutdown, for power off and for power on. The hub writes the time of each power command
     * before it sends the command to MAAS.
     */
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
    /** The next time at which a hub continues the power action, and the time until which a hub has claimed it. */
    wakeAt: at("wake_at").notNull().default(sql`now()`),
    claimedUntil: at("claimed_until"),
    /** A number that rises with each claim of the power action; a hub whose claim is over writes nothing. */
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
