import type { Because } from "../../../shared/api/approvals.ts";
import { ApiError } from "../../../shared/api/errors.ts";
import type { Right } from "../../../shared/api/rights.ts";
import type { SiteId } from "../../../shared/ids.ts";
import { canonicalJson, type Json } from "../../../shared/json.ts";
import {
  countOpenApprovals,
  type FoundApproval,
  insertApproval,
  lockOpenApproval,
  readApproval,
} from "../../db/queries/approvals.ts";
import { type AuditSource, sha256Hex } from "../../db/queries/audit-logs.ts";
import type { Tx } from "../../db/tx.ts";
import type { Actor } from "../actor.ts";
import { callerKey, HOW_TO_BE_KNOWN, identitiesOf, mayBeAnybody } from "./identities.ts";
import { HUB, moveApproval, tellApproval } from "./move-approval.ts";

/**
 * The largest numbers of open approvals at one site: of one requester with all their tokens, and of all requesters together. The limits in
 * `MOST_OPEN` keep a requester or a site from using up the approvals of others; each open approval expires after some hours.
 */
export const MOST_OPEN = { requester: 50, site: 500 } as const;

/**
 * The objects of a request that the hub finds and locks only when it carries out the request, for example the nodes of a filter. An approval is for
 * exactly these objects.
 */
export interface Fixed {
  readonly of: "nodes" | "machines" | "profile";
  readonly ids: readonly string[];
  /** The names of the objects, for the second person, if the ids mean nothing to a person. */
  readonly names?: readonly string[];
}

/** Why a request needs a second person, and what the request would do. */
export interface Asked {
  readonly siteId: SiteId;
  readonly because: Because;
  readonly does: string;
}

/** A request that may need an approval. A request that may need an approval holds no secret, so the hub may store and show its body. */
export interface ApprovableRequest {
  readonly operation: string;
  readonly neededRight: Right;
  readonly params: Readonly<Record<string, string>>;
  readonly body: Json;
  readonly fixed: Fixed | null;
}

/**
 * The hash by which the hub recognizes a repetition of a request that needs an approval. The hash of a request covers its parsed body, which contains
 * the default values, so a request that leaves out a default has the same hash as one that names it. The order of the ids of the request's objects
 * does not change the hash of the request.
 */
export const requestHash = ({ operation, params, body, fixed }: ApprovableRequest): string =>
  sha256Hex(canonicalJson([operation, params, body, ...(fixed === null ? [] : [fixed.of, fixed.ids.toSorted()])]));

export interface Asker {
  readonly actor: Actor;
  readonly source: AuditSource;
}

/** Returns the open approval of the request: the one that the requester has asked for before, or a new one. */
export async function askApproval(
  tx: Tx,
  request: ApprovableRequest,
  asked: Asked,
  { actor, source, hours }: Asker & { readonly hours: number },
): Promise<FoundApproval> {
  const requester = callerKey(actor);
  const requesterIds = [...(await identitiesOf(tx, actor))];
  if (mayBeAnybody(requesterIds)) throw unknownRequester(actor, asked);
  const requestSha256 = requestHash(request);
  const open = await lockOpenApproval(tx, { requester, requestSha256 });
  if (open !== null && open.stateNow !== "expired") return open;
  if (open !== null) await moveApproval(tx, open, "expired", { source: HUB });
  await mustHaveRoom(tx, asked.siteId, { name: actor.name, ids: requesterIds });
  const { fixed: _, ...stored } = request;
  const about = { ...stored, ...asked, requestSha256, requestedBy: actor.name, requester, requesterIds };
  const row = await insertApproval(tx, about, hours);
  // Two requests at once make one approval: the second one waits in `insertApproval` for the commit of the first one.
  const first = row === null ? await lockOpenApproval(tx, { requester, requestSha256 }) : null;
  if (first !== null) return first;
  if (row === null) throw new ApiError("conflict", "The request was approved or refused meanwhile. Send it again.");
  await tellApproval(tx, row, "pending", source);
  const found = await readApproval(tx, row.id);
  if (found === null) throw new Error(`approval ${row.id} was written and cannot be read`);
  return found;
}

/** If the hub cannot tell the requester from other people, nobody counts as a second person, so the hub refuses the request and asks for no approval. */
const unknownRequester = ({ name }: Actor, { does }: Asked): ApiError =>
  new ApiError(
    "conflict",
    `A second person must approve this request: ${does} The hub cannot tell who ${name} is, so nobody can approve it. ${HOW_TO_BE_KNOWN} Then send the request again.`,
  );

async function mustHaveRoom(
  tx: Tx,
  siteId: SiteId,
  requester: { readonly name: string; readonly ids: readonly string[] },
): Promise<void> {
  const { ofSite, ofRequester } = await countOpenApprovals(tx, siteId, requester.ids);
  if (ofRequester >= MOST_OPEN.requester)
    throw new ApiError(
      "conflict",
      `${MOST_OPEN.requester} requests of ${requester.name} at this site wait for an approval or for their use, which is the limit of one requester. Send the approved ones again, or withdraw some (refuse-approval).`,
    );
  if (ofSite >= MOST_OPEN.site)
    throw new ApiError(
      "conflict",
      `${MOST_OPEN.site} requests of this site wait for an approval or for their use, which is the limit of one site. Approve or refuse some of them (list-approvals).`,
    );
}

/** The error that tells a requester to wait for a second person, and how to go on. */
export function approvalRequired({ id, stateNow, expiresAt, because, does }: FoundApproval): ApiError {
  const why = because.map(({ entry, profile }) => `${entry} (profile ${profile})`).join(", ");
  const next =
    stateNow === "approved"
      ? `Approval ${id} is given. Send the same request again with the header Muster-Approval: ${id} (muster: --approval ${id}).`
      : `Approval ${id} waits for a second person until ${expiresAt.toISOString()}. When it is given (grant-approval ${id}), send the same request again with the header Muster-Approval: ${id} (muster: --approval ${id}).`;
  return new ApiError(
    "approval_required",
    `A second person must approve this request: ${does} Asked by: ${why}. ${next}`,
    {
      context: { approval_id: id, state: stateNow, expires_at: expiresAt.toISOString() },
    },
  );
}
