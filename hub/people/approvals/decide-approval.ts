import type { ApprovalId } from "../../../shared/api/approvals.ts";
import { ApiError } from "../../../shared/api/errors.ts";
import { hasRight, RIGHTS, rolesWith } from "../../../shared/api/rights.ts";
import { type FoundApproval, lockApproval } from "../../db/queries/approvals.ts";
import type { Db, Tx } from "../../db/tx.ts";
import type { Actor } from "../actor.ts";
import { mayMove } from "./approval-moves.ts";
import type { Asker } from "./ask-approval.ts";
import { callerKey, HOW_TO_BE_KNOWN, identitiesOf, mayBeAnybody, mayBeOne, requesterIdentities } from "./identities.ts";
import { moveApproval } from "./move-approval.ts";
import { noApproval } from "./no-approval.ts";

async function mustLock(tx: Tx, id: ApprovalId): Promise<FoundApproval> {
  const approval = await lockApproval(tx, id);
  if (approval === null) throw noApproval(id);
  return approval;
}

function mustHaveNeededRight({ role, name }: Actor, { neededRight, operation }: FoundApproval): void {
  if (hasRight(role, neededRight)) return;
  throw new ApiError(
    "forbidden",
    `A second person for ${operation} needs the right ${neededRight} (${RIGHTS[neededRight]}), which ${name} with the role ${role} does not have. Ask somebody with one of these roles: ${rolesWith(neededRight).join(", ")}.`,
  );
}

/** Throws if the caller may be the same person as the requester. */
async function mustBeAnother(db: Db | Tx, actor: Actor, approval: FoundApproval): Promise<void> {
  const [own, requester] = [await identitiesOf(db, actor), await requesterIdentities(db, approval)];
  if (!mayBeOne(own, requester)) return;
  const { id, requestedBy } = approval;
  if (mayBeAnybody(own))
    throw new ApiError(
      "own_approval",
      `The hub cannot tell that ${actor.name} is another person than ${requestedBy}, who asked for approval ${id}. ${HOW_TO_BE_KNOWN}`,
    );
  if (mayBeAnybody(requester))
    throw new ApiError(
      "own_approval",
      `The hub cannot tell who ${requestedBy} is, so nobody can approve the request of approval ${id}. ${HOW_TO_BE_KNOWN} Then send the request again.`,
    );
  throw new ApiError(
    "own_approval",
    `${actor.name} counts as the same person as ${requestedBy}, who asked for approval ${id}. A token counts as everybody who has created or rotated it. Ask another person to approve the request.`,
  );
}

/** Says why the caller cannot approve the request; null if the caller can. The grant itself judges again. */
export async function whyNotGrant(db: Db | Tx, approval: FoundApproval, actor: Actor): Promise<string | null> {
  if (!mayMove(approval.stateNow, "approved")) return `The request is ${approval.stateNow}, so nobody can approve it.`;
  try {
    mustHaveNeededRight(actor, approval);
    await mustBeAnother(db, actor, approval);
    return null;
  } catch (error) {
    if (error instanceof ApiError) return error.message;
    throw error;
  }
}

/** Approves a request as a second person, who must be somebody other than its requester and must have the right of the request. */
export async function grantApproval(tx: Tx, id: ApprovalId, reason: string, { actor, source }: Asker): Promise<void> {
  const approval = await mustLock(tx, id);
  mustHaveNeededRight(actor, approval);
  await mustBeAnother(tx, actor, approval);
  const decision = { by: actor.name, reason, approver: callerKey(actor), accessToken: actor.accessToken ?? null };
  await moveApproval(tx, approval, "approved", { source, decision });
}

/** Refuses a request. A requester who refuses their own request withdraws it. */
export async function refuseApproval(tx: Tx, id: ApprovalId, reason: string, { actor, source }: Asker): Promise<void> {
  const approval = await mustLock(tx, id);
  const isOwn = approval.requester === callerKey(actor);
  if (!isOwn) mustHaveNeededRight(actor, approval);
  const decision = { by: actor.name, reason, approver: null, accessToken: null };
  await moveApproval(tx, approval, isOwn ? "withdrawn" : "refused", { source, decision });
}
