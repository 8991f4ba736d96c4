import type { ApprovalState } from "../../../shared/api/approvals.ts";
import { ApiError } from "../../../shared/api/errors.ts";
import type { EventType } from "../../../shared/events.ts";
import { type Decision, type FoundApproval, writeState } from "../../db/queries/approvals.ts";
import { type AuditSource, recordAudit } from "../../db/queries/audit-logs.ts";
import { recordDomainEvent } from "../../db/queries/domain-events.ts";
import type { ApprovalRow } from "../../db/schema/index.ts";
import type { Tx } from "../../db/tx.ts";
import { mayMove } from "./approval-moves.ts";

const EVENT_OF = {
  pending: "approval.requested",
  approved: "approval.approved",
  refused: "approval.refused",
  used: "approval.used",
  expired: "approval.expired",
  withdrawn: "approval.withdrawn",
} as const satisfies Record<ApprovalState, EventType>;

/** The sender of the hub's own acts. */
export const HUB: AuditSource = { actor: "hub", role: "none", requestId: null };

/**
 * The only function that changes the state of an approval. The caller has locked the row. The route by which a person decides about an approval
 * writes the audit entry of the decision, so `moveApproval` writes an entry only for the other changes of state.
 */
export async function moveApproval(
  tx: Tx,
  approval: FoundApproval,
  to: ApprovalState,
  { source, decision = null }: { readonly source: AuditSource; readonly decision?: Decision | null },
): Promise<void> {
  if (!mayMove(to === "expired" ? approval.state : approval.stateNow, to)) throw closed(approval, to);
  await writeState(tx, approval.id, to, decision);
  await tellApproval(tx, approval, to, source);
}

/** Writes the event of an approval's new state, and the audit entry if no route writes one. */
export async function tellApproval(tx: Tx, row: ApprovalRow, state: ApprovalState, source: AuditSource): Promise<void> {
  await recordDomainEvent(tx, {
    type: EVENT_OF[state],
    subject: `approvals/${row.id}`,
    data: {
      approval_id: row.id,
      site_id: row.siteId,
      operation: row.operation,
      requested_by: row.requestedBy,
      by: source.actor,
      expires_at: row.expiresAt.toISOString(),
      message: row.does,
    },
  });
  if (state === "approved" || state === "refused" || state === "withdrawn") return;
  const details = { operation: row.operation, params: row.params, requested_by: row.requestedBy, does: row.does };
  const entry = { ...source, target: `approvals/${row.id}`, siteId: row.siteId, reason: null };
  await recordAudit(tx, { ...entry, action: EVENT_OF[state], details: { ...details, because: row.because } });
}

/** For each state of an approval, the next step that the hub names to a person who asked for a change which this state does not allow. */
const NEXT: Readonly<Record<ApprovalState, string>> = {
  pending: "Another person has to approve it first (grant-approval).",
  approved: "Its requester sends the request again and names the approval.",
  used: "The hub has carried out its request. See the audit for what the request did.",
  refused: "To ask for a new approval, its requester sends the request again.",
  withdrawn: "To ask for a new approval, its requester sends the request again.",
  expired: "To ask for a new approval, its requester sends the request again.",
};

const closed = ({ id, stateNow }: FoundApproval, to: ApprovalState): ApiError =>
  new ApiError("conflict", `Approval ${id} is ${stateNow}, so it cannot become ${to}. ${NEXT[stateNow]}`, {
    context: { approval_id: id, state: stateNow },
  });
