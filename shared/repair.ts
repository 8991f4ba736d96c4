import { z } from "zod";

/** In a full repair the tenant has given the machine up. In an online repair the tenant keeps the machine (docs/spec/repair.md, decision R2). */
export const REPAIR_MODES = ["full", "online"] as const;
export const RepairMode = z.enum(REPAIR_MODES);
export type RepairMode = z.output<typeof RepairMode>;

/**
 * The states of a repair case. A repair case ends only in the states `closed` and `abandoned`, and a node has at most one repair case that has not
 * ended.
 */
export const REPAIR_STATES = {
  reported: "a fault is known, and nobody has asked for its repair",
  requested: "a repair system or a person may claim the machine",
  claimed: "somebody repairs the machine",
  repaired: "the repair is said to be done, and the machine must pass its checks",
  failed: "the last attempt ended without success",
  escalated: "a person of the provider must look at the machine",
  closed: "the machine is out of repair",
  abandoned: "the node was removed during its repair",
} as const;
export type RepairState = keyof typeof REPAIR_STATES;
export const REPAIR_STATE_NAMES = Object.keys(REPAIR_STATES) as [RepairState, ...RepairState[]];
export const RepairStateName = z.enum(REPAIR_STATE_NAMES);

export const ENDED_STATES = ["closed", "abandoned"] as const satisfies readonly RepairState[];

/** True while the machine is repaired with its tenant on it, so that the tenant's allocation is not released (decision R2). */
export const isOnlineUnderWay = (mode: RepairMode, state: RepairState): boolean =>
  mode === "online" && (state === "requested" || state === "claimed" || state === "repaired");

/**
 * What the repair system or the person who repaired the machine reports about the attempt. The outcome `unknown` of a repair attempt means that
 * nobody reported how the attempt ended.
 */
const REPORTED_OUTCOMES = ["completed", "failed", "in_progress", "manual"] as const;
export const ReportedOutcome = z.enum(REPORTED_OUTCOMES);
export type ReportedOutcome = z.output<typeof ReportedOutcome>;
export const REPAIR_OUTCOMES = [...REPORTED_OUTCOMES, "unknown"] as const;
export type RepairOutcome = (typeof REPAIR_OUTCOMES)[number];

/** Why Muster did not request a repair after a tenant's report of a fault, although the site repairs automatically. */
export const HOLDS = {
  breaker: "too many machines of the site are in repair at once",
  attempts_spent: "the machine has had all its attempts",
  no_new_evidence: "the report says nothing that an earlier attempt did not know",
} as const;
export type Hold = keyof typeof HOLDS;
export const HOLD_NAMES = Object.keys(HOLDS) as [Hold, ...Hold[]];

/** The categories of NVIDIA NICo. */
export const ISSUE_CATEGORIES = ["Hardware", "Network", "Performance", "Storage", "Software", "Other"] as const;
const Told = z
  .string()
  .trim()
  .min(1)
  .regex(/^\P{Cs}*$/u)
  .refine((text) => !text.includes("\0"), "must hold no zero byte");
export const HealthIssue = z.strictObject({
  category: z.enum(ISSUE_CATEGORIES).describe("What kind of fault it is"),
  summary: Told.max(1024).describe("The fault in one sentence"),
  details: Told.max(8192).nullable().describe("All that helps to find the fault").default(null),
});
export type HealthIssue = z.output<typeof HealthIssue>;

/** The entries of a case's timeline. */
export const REPAIR_ENTRIES = [
  "opened",
  "reported_again",
  "held_back",
  "requested",
  "request_withdrawn",
  "claimed",
  "claim_extended",
  "access_given",
  "completed",
  "failed",
  "lapsed",
  "handed_over",
  "escalated",
  "validation_passed",
  "validation_failed",
  "became_full",
  "closed",
  "abandoned",
] as const;
export type RepairEntry = (typeof REPAIR_ENTRIES)[number];
