import { type ApprovalId, ApprovalId as Id } from "../../../shared/api/approvals.ts";
import { ApiError } from "../../../shared/api/errors.ts";
import { hasRight } from "../../../shared/api/rights.ts";
import type { ApiRole } from "../../../shared/api/roles.ts";
import { findTokenHolderById } from "../../db/queries/api-tokens.ts";
import { type FoundApproval, lockApproval } from "../../db/queries/approvals.ts";
import { newestClaims } from "../../db/queries/page-sessions.ts";
import type { Reach } from "../../db/queries/reach.ts";
import type { Tx } from "../../db/tx.ts";
import type { SignIn } from "../../sign-in/open-sign-in.ts";
import { grantNow } from "../../sign-in/person-actor.ts";
import type { ApprovableRequest, Asker } from "./ask-approval.ts";
import { requestHash } from "./ask-approval.ts";
import { callerKey } from "./identities.ts";
import { moveApproval } from "./move-approval.ts";

/**
 * Uses an approval in the transaction of the approved request. The lock of the row makes sure that one request uses the approval, also under two hubs.
 * Throws `approval_unusable` if the approval is not one of this request, or does not count any more.
 */
export async function useApproval(
  tx: Tx,
  named: string,
  request: ApprovableRequest,
  { actor, source, signIn }: Asker & { readonly signIn: SignIn },
): Promise<ApprovalId> {
  const parsed = Id.safeParse(named);
  const approval = parsed.success ? await lockApproval(tx, parsed.data) : null;
  // The answer is the same for an approval of somebody else and for one that does not exist, so that nobody learns which ids exist.
  if (approval === null || approval.requester !== callerKey(actor))
    throw unusable(named, "You have asked for no such approval. Send the request without the header to ask for one.");
  if (approval.requestSha256 !== requestHash(request))
    throw unusable(
      named,
      `It is for another request: ${approval.does} Send that request unchanged, or send this one without the header to ask for its own approval.`,
    );
  if (approval.stateNow !== "approved")
    throw unusable(
      named,
      approval.stateNow === "pending"
        ? "Nobody has approved it yet. Wait for a second person."
        : `It is ${approval.stateNow}. Send the request without the header to ask for a new approval.`,
    );
  if (!(await stillCounts(tx, approval, signIn)))
    throw unusable(
      named,
      `${approval.decidedBy} gave it, and may no longer do what the request does. Have another person approve it.`,
    );
  await moveApproval(tx, approval, "used", { source });
  return approval.id;
}

const unusable = (named: string, why: string): ApiError =>
  new ApiError("approval_unusable", `The approval ${named.slice(0, 64)} cannot be used. ${why}`);

/**
 * True if the second person could approve the request now. A revoked token, and a person whose groups or rules give the right no more, do not count. Of
 * a person the hub knows the claims of the newest session on the page; a person without one keeps the approval until it expires.
 */
async function stillCounts(tx: Tx, approval: FoundApproval, { oidc }: SignIn): Promise<boolean> {
  const [kind, id = ""] = splitKey(approval.approver ?? "");
  if (kind === "token") return reaches(await findTokenHolderById(tx, id), approval);
  if (oidc === null) return false;
  const claims = await newestClaims(tx, id);
  return claims === null || reaches(await grantNow(claims, oidc.roles, tx), approval);
}

const splitKey = (key: string): [string, string | undefined] => {
  const at = key.indexOf(":");
  return at < 0 ? [key, undefined] : [key.slice(0, at), key.slice(at + 1)];
};

const reaches = (
  holder: (Reach & { readonly role: ApiRole }) | null,
  { neededRight, siteId }: Pick<FoundApproval, "neededRight" | "siteId">,
): boolean =>
  holder !== null &&
  hasRight(holder.role, neededRight) &&
  holder.tenant === null &&
  (holder.sites === null || holder.sites.includes(siteId));
