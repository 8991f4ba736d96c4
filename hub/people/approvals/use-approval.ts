import { type ApprovalId, ApprovalId as Id } from "../../../shared/api/approvals.ts";
import { ApiError } from "../../../shared/api/errors.ts";
import { hasRight } from "../../../shared/api/rights.ts";
import type { ApiRole } from "../../../shared/api/roles.ts";
import { canonicalJson } from "../../../shared/json.ts";
import { findTokenHolderById } from "../../db/queries/api-tokens.ts";
import { type FoundApproval, lockApproval } from "../../db/queries/approvals.ts";
import { databaseNow } from "../../db/queries/clock.ts";
import { newestClaims } from "../../db/queries/page-sessions.ts";
import type { Reach } from "../../db/queries/reach.ts";
import type { Tx } from "../../db/tx.ts";
import type { SignIn } from "../../sign-in/open-sign-in.ts";
import { grantNow } from "../../sign-in/person-actor.ts";
import type { ApprovableRequest, Asker } from "./ask-approval.ts";
import { requestHash } from "./ask-approval.ts";
import {
  callerKey,
  HOW_TO_BE_KNOWN,
  identitiesOfKey,
  keyParts,
  mayBeAnybody,
  mayBeOne,
  requesterIdentities,
} from "./identities.ts";
import { moveApproval } from "./move-approval.ts";

/**
 * Marks an approval as used, in the same transaction as the approved request. The lock of the approval's row makes sure that only one request uses
 * the approval, even if two hubs try at once. Throws `approval_unusable` if the approval was not given for the present request, or no longer counts.
 */
export async function useApproval(
  tx: Tx,
  named: string,
  request: ApprovableRequest,
  { actor, source, signIn }: Asker & { readonly signIn: SignIn },
): Promise<ApprovalId> {
  const parsed = Id.safeParse(named);
  const approval = parsed.success ? await lockApproval(tx, parsed.data) : null;
  // An approval that somebody else requested gets the same error as one that does not exist, so that nobody learns which approval ids exist.
  if (approval === null || approval.requester !== callerKey(actor))
    throw unusable(named, "You have asked for no such approval. Send the request without the header to ask for one.");
  if (approval.requestSha256 !== requestHash(request)) throw unusable(named, otherRequest(approval, request));
  if (approval.stateNow !== "approved")
    throw unusable(
      named,
      approval.stateNow === "pending"
        ? "Nobody has approved it yet. Wait for a second person."
        : `It is ${approval.stateNow}. Send the request without the header to ask for a new approval.`,
    );
  const fault = await faultOf(tx, approval, signIn);
  if (fault !== null) throw unusable(named, `${approval.decidedBy} gave it, ${fault}`);
  await moveApproval(tx, approval, "used", { source });
  return approval.id;
}

const unusable = (named: string, why: string): ApiError =>
  new ApiError("approval_unusable", `The approval ${named.slice(0, 64)} cannot be used. ${why}`);

const FOUND_NOW = {
  nodes: "The filter of the request matches other nodes now",
  machines: "The filter of the request matches other machines now",
  profile: "Another profile is the site's default profile now",
} as const;

/** Says how the request differs from the approved one: it is another request, or the same request would now concern other objects. */
function otherRequest(approval: FoundApproval, { operation, params, body, fixed }: ApprovableRequest): string {
  const isSame =
    canonicalJson([approval.operation, approval.params, approval.body]) === canonicalJson([operation, params, body]);
  return fixed !== null && isSame
    ? `${FOUND_NOW[fixed.of]} than when you asked for the approval: ${approval.does} Send the request without the header to ask for a new approval.`
    : `It is for another request: ${approval.does} Send that request unchanged, or send this one without the header to ask for its own approval.`;
}

/** Says why the approver no longer counts as the second person of an approval; null if the approver could approve the request now. */
async function faultOf(tx: Tx, approval: FoundApproval, signIn: SignIn): Promise<string | null> {
  const approver = await identitiesOfKey(tx, approval.approver ?? "");
  const requester = await requesterIdentities(tx, approval);
  if (mayBeAnybody(approver))
    return `and the hub cannot tell any more who ${approval.decidedBy} is. ${HOW_TO_BE_KNOWN} Have another person approve it.`;
  if (mayBeAnybody(requester))
    return `and the hub cannot tell any more who ${approval.requestedBy} is, so nobody can approve it. ${HOW_TO_BE_KNOWN} Then send the request without the header to ask for a new approval.`;
  if (mayBeOne(approver, requester))
    return "and counts as the same person as you now, because a token was rotated since. Have another person approve it.";
  const holder = await holderNow(tx, approval, signIn);
  if (holder === "unknown")
    return "and has no open session, so the hub cannot see whether this person may still do what the request does. Ask this person to sign in again on the page or to approve the request again, or have another person approve it.";
  return reaches(holder, approval)
    ? null
    : "and may no longer do what the request does. Have another person approve it.";
}

type Holder = Reach & { readonly role: ApiRole };

/**
 * What the approver, the second person of an approval, may do now: a token has its present rights, and a person has the rights that the present role
 * rules give. The hub takes the approver's identity claims from the approver's newest open session in the console. Without an open session of the
 * approver, the hub takes the identity claims from the approver's access token while the token is valid. If the hub has no identity claims of the
 * approver, it does not know the approver's rights, and the approval does not count.
 */
async function holderNow(tx: Tx, approval: FoundApproval, { oidc }: SignIn): Promise<Holder | "unknown" | null> {
  const { kind, id } = keyParts(approval.approver ?? "");
  if (kind === "token") return findTokenHolderById(tx, id);
  if (oidc === null) return null;
  const claims = (await newestClaims(tx, id)) ?? (await claimsOfAccessToken(tx, approval));
  return claims === null ? "unknown" : grantNow(claims, oidc.roles, tx);
}

async function claimsOfAccessToken(tx: Tx, approval: FoundApproval) {
  const until = approval.approverUntil;
  return until === null || until <= (await databaseNow(tx)) ? null : approval.approverClaims;
}

const reaches = (holder: Holder | null, approval: FoundApproval): boolean =>
  holder !== null &&
  hasRight(holder.role, approval.neededRight) &&
  holder.tenant === null &&
  (holder.sites === null || holder.sites.includes(approval.siteId));
