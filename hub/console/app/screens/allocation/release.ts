import type { Body } from "../../api/schema.ts";
import { type IssueValues, issueOf } from "../../forms/issue-fields.tsx";

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
}

/** The request for the release. Only the access of a repair may report a repair, and the hub refuses every other release that does. */
export const releaseBody = (
  reason: string,
  { isFaulty, issue, outcome }: Said,
  isAccess: boolean,
): Body<"releaseAllocation"> => ({
  reason,
  ...(isFaulty ? { machine_health_issue: issueOf(issue) } : {}),
  ...(isAccess ? { is_repair_tenant: true } : {}),
  ...(isAccess && outcome !== "" ? { repair_status: outcome } : {}),
});
