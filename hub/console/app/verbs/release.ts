import type { Body } from "../api/schema.ts";
import { type IssueValues, issueOf, NO_ISSUE } from "../forms/issue-fields.tsx";

/** The possible outcomes of a repair, as the API names them. */
export const OUTCOMES = {
  Completed: "The repair is done",
  Failed: "The repair failed",
  InProgress: "The repair is not done",
} as const;
export type Outcome = keyof typeof OUTCOMES;

/** What a person says about the machine when they end an allocation. */
export interface Said {
  readonly isFaulty: boolean;
  readonly issue: IssueValues;
  /** The outcome of the repair, if the allocation gives a repairer access; empty if the person has not chosen one. */
  readonly outcome: Outcome | "";
  /** Whether the allocation gives a repairer access to the host; null until the hub has answered that. */
  readonly isAccess: boolean | null;
}
export const NOTHING_SAID: Said = { isFaulty: false, issue: NO_ISSUE, outcome: "", isAccess: null };

/**
 * The body of the request that releases the allocation, for the kind of allocation that the person saw. Only the release of a repairer's access may
 * report the outcome of a repair, and the hub refuses any other release with an outcome, for example if the repair has ended meanwhile.
 */
export const releaseBody = (
  reason: string,
  { isFaulty, issue, outcome, isAccess }: Said,
): Body<"releaseAllocation"> => ({
  reason,
  ...(isFaulty ? { machine_health_issue: issueOf(issue) } : {}),
  ...(isAccess === true ? { is_repair_tenant: true } : {}),
  ...(isAccess === true && outcome !== "" ? { repair_status: outcome } : {}),
});
