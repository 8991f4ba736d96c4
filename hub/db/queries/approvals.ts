import type { ApprovalId, ApprovalState, Because } from "../../../shared/api/approvals.ts";
import type { Right } from "../../../shared/api/rights.ts";
import type { SiteId } from "../../../shared/ids.ts";
import type { Json } from "../../../shared/json.ts";
import { and, count, desc, eq, getTableColumns, inArray, type SQL, sql } from "../orm.ts";
import { type ApprovalRow, approvals } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { isWithin, type Reach } from "./reach.ts";

const t = approvals;
const OPEN = ["pending", "approved"] as const satisfies readonly ApprovalState[];
const isPast = sql<boolean>`${t.expiresAt} <= now()`;
/** The present state of an approval: an open approval past its expiry time counts as expired, even if no hub has written that to the database yet. */
const stateNow = sql<ApprovalState>`case when ${inArray(t.state, [...OPEN])} and ${isPast} then 'expired' else ${t.state} end`;

export interface NewApproval {
  readonly operation: string;
  readonly neededRight: Right;
  readonly siteId: SiteId;
  readonly params: Readonly<Record<string, string>>;
  readonly body: Json;
  readonly requestSha256: string;
  readonly does: string;
  readonly because: Because;
  readonly requestedBy: string;
  readonly requester: string;
  readonly requesterIds: string[];
}

/** Returns the new approval, or null if the requester already has an open approval for an identical request. */
export async function insertApproval(tx: Tx, approval: NewApproval, hours: number): Promise<ApprovalRow | null> {
  const [row] = await tx
    .insert(t)
    .values({ ...approval, expiresAt: sql`now() + make_interval(hours => ${hours}::int)` })
    .onConflictDoNothing()
    .returning();
  return row ?? null;
}

/** Counts a site's open approvals, and how many of them the person with the identities `requesterIds` may have requested. */
export async function countOpenApprovals(
  tx: Tx,
  siteId: SiteId,
  requesterIds: readonly string[],
): Promise<{ ofSite: number; ofRequester: number }> {
  const ofRequester = sql<number>`(count(*) filter (where ${t.requesterIds} && ${sql.param([...requesterIds])}::text[]))::int`;
  const [row] = await tx
    .select({ ofSite: count(), ofRequester })
    .from(t)
    .where(and(eq(t.siteId, siteId), inArray(t.state, [...OPEN]), sql`not ${isPast}`));
  return row ?? { ofSite: 0, ofRequester: 0 };
}

const columns = { ...getTableColumns(t), stateNow, at: sql<string>`${t.createdAt}::text` };
/** The row of an approval with its present state, and with the time of its request as text. */
export type FoundApproval = ApprovalRow & { readonly stateNow: ApprovalState; readonly at: string };

export async function readApproval(db: Db | Tx, id: ApprovalId): Promise<FoundApproval | null> {
  const [row] = await db.select(columns).from(t).where(eq(t.id, id));
  return row ?? null;
}

/** Locks the row of an approval until the transaction ends, so that two hubs never change or use one approval at once. */
export async function lockApproval(tx: Tx, id: ApprovalId): Promise<FoundApproval | null> {
  const [row] = await tx.select(columns).from(t).where(eq(t.id, id)).for("update");
  return row ?? null;
}

/** Locks the open approval that the requester has for an identical request. */
export async function lockOpenApproval(
  tx: Tx,
  { requester, requestSha256 }: Pick<NewApproval, "requester" | "requestSha256">,
): Promise<FoundApproval | null> {
  const [row] = await tx
    .select(columns)
    .from(t)
    .where(and(eq(t.requester, requester), eq(t.requestSha256, requestSha256), inArray(t.state, [...OPEN])))
    .for("update");
  return row ?? null;
}

/** Locks some open approvals that are past their expiry time, without those that another transaction has locked. */
export const lockPastApprovals = (tx: Tx, most: number): Promise<FoundApproval[]> =>
  tx
    .select(columns)
    .from(t)
    .where(and(inArray(t.state, [...OPEN]), isPast))
    .orderBy(t.expiresAt)
    .limit(most)
    .for("update", { skipLocked: true });

export interface Decision {
  readonly by: string;
  readonly reason: string;
  /** The second person who approved the request; null if nobody did. */
  readonly approver: string | null;
  /** The claims and expiry of the approver's access token; null if the approver had no access token. */
  readonly accessToken: { readonly claims: Readonly<Record<string, unknown>>; readonly until: Date } | null;
}

/** Writes a new state. Only `moveApproval` calls `writeState`, because `moveApproval` also writes the event and the audit entry. */
export async function writeState(tx: Tx, id: ApprovalId, to: ApprovalState, decision: Decision | null): Promise<void> {
  const decided =
    decision === null
      ? {}
      : {
          decidedBy: decision.by,
          decisionReason: decision.reason,
          decidedAt: sql`now()`,
          ...(decision.approver === null ? {} : { approver: decision.approver }),
        };
  // The approver's token claims matter only while an approval waits for its use, so every other state clears the stored claims.
  const judged = {
    approverClaims: (to === "approved" && decision?.accessToken?.claims) || null,
    approverUntil: (to === "approved" && decision?.accessToken?.until) || null,
  };
  await tx
    .update(t)
    .set({ state: to, ...decided, ...judged, ...(to === "used" ? { usedAt: sql`now()` } : {}) })
    .where(eq(t.id, id));
}

export const listApprovals = (
  db: Db,
  filter: {
    readonly states: readonly ApprovalState[] | undefined;
    readonly siteId: SiteId | undefined;
    readonly reach: Reach;
  },
  page: { readonly before: readonly [string, string] | null; readonly limit: number },
): Promise<FoundApproval[]> => {
  const { before } = page;
  const older: SQL | undefined =
    before === null ? undefined : sql`(${t.createdAt}, ${t.id}) < (${before[0]}::timestamptz, ${before[1]}::uuid)`;
  return db
    .select(columns)
    .from(t)
    .where(
      and(
        older,
        filter.states === undefined ? undefined : inArray(stateNow, [...filter.states]),
        filter.siteId === undefined ? undefined : eq(t.siteId, filter.siteId),
        isWithin(filter.reach, { site: t.siteId }),
      ),
    )
    .orderBy(desc(t.createdAt), desc(t.id))
    .limit(page.limit);
};
