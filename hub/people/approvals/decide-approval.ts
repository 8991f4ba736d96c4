import type { ApprovalId } from "../../../shared/api/approvals.ts";
import { ApiError } from "../../../shared/api/errors.ts";
import { hasRight, RIGHTS, rolesWith } from "../../../shared/api/rights.ts";
import { type FoundApproval, lockApproval } from "../../db/queries/approvals.ts";
import type { Tx } from "../../db/tx.ts";
import type { Actor } from "../actor.ts";
import type { Asker } from "./ask-approval.ts";
import { callerKey, identitiesOf, mayBeOne } from "./identities.ts";
import { moveApproval } from "./move-approval.ts";

async function mustLock(tx: Tx, id: ApprovalId): Promise<FoundApproval> {
  const approval = await lockApproval(tx, id);
  if (approval === null) throw new ApiError("not_found", `There is no approval ${id}.`);
  return approval;
}

function mustHaveNeededRight({ role, name }: Actor, { neededRight, operation }: FoundApproval): void {
  if (hasRight(role, neededRight)) return;
  throw new ApiError(
    "forbidden",
    `A second person for ${operation} needs the right ${neededRight} (${RIGHTS[neededRight]}), which ${name} with the role ${role} does not have. Ask somebody with one of these roles: ${rolesWith(neededRight).join(", ")}.`,
  );
}

/** Approves a request as a second person, who must be somebody other than its requester and must have the right of the request. */
export async function grantApproval(tx: Tx, id: ApprovalId, reason: string, { actor, source }: Asker): Promise<void> {
  const approval = await mustLock(tx, id);
  mustHaveNeededRight(actor, approval);
  if (mayBeOne(await identitiesOf(tx, actor), approval.requesterIds))
    throw new ApiError(
      "own_approval",
      `${actor.name} counts as the same person as ${approval.requestedBy}, who asked for approval ${id}. A token counts as everybody who has created or rotated it. Ask another person to approve the request.`,
    );
  const decision = { by: actor.name, reason, approver: callerKey(actor) };
  await moveApproval(tx, approval, "approved", { source, decision });
}

/** Refuses a request. A requester who refuses their own request withdraws it. */
export async function refuseApproval(tx: Tx, id: ApprovalId, reason: string, { actor, source }: Asker): Promise<void> {
  const approval = await mustLock(tx, id);
  const isOwn = approval.requester === callerKey(actor);
  if (!isOwn) mustHaveNeededRight(actor, approval);
  const decision = { by: actor.name, reason, approver: null };
  await moveApproval(tx, approval, isOwn ? "withdrawn" : "refused", { source, decision });
}
