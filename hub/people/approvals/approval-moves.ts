import type { ApprovalState } from "../../../shared/api/approvals.ts";

/**
 * The states that may follow each state of an approval. An approved request may be approved again, by another person, if the first approver no longer
 * counts.
 */
const MOVES: Readonly<Record<ApprovalState, readonly ApprovalState[]>> = {
  pending: ["approved", "refused", "expired", "withdrawn"],
  approved: ["approved", "refused", "used", "expired", "withdrawn"],
  refused: [],
  used: [],
  expired: [],
  withdrawn: [],
};

export const mayMove = (from: ApprovalState, to: ApprovalState): boolean => MOVES[from].includes(to);
