import type { Body } from "../api/schema.ts";
import { type IssueValues, issueOf, NO_ISSUE } from "../forms/issue-fields.tsx";

/** What came of a repair, in the words of the API. */
export const OUTCOMES = {
  Completed: "The repair is done",
  Failed: "The repair failed",
  InProgress: "The repair is not done",
} as const;
export type Outcome = keyof typeof OUTCOMES;

/** What a person says about the machine when the allocation ends. */
export interface Said {
  readonly isFaulty: boolean;
  readonly issue: IssueValues;
  /** What came of the repair, if the allocation is the access of one; empty if the person does not say it. */
  readonly outcome: Outcome | "";
  /** Whether the allocation is the access of a repair; null until the hub has said it. */
  readonly isAccess: boolean | null;
}
export const NOTHING_SAID: Said = { isFaulty: false, issue: NO_ISSUE, outcome: "", isAccess: null };

/**
 * The request for the release, about the allocation as the person saw it. Only the access of a repair may report a repair, and the hub refuses every
 * other release that does, for example when the repair has ended meanwhile.
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
