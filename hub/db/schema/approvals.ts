import { APPROVAL_STATES, type ApprovalId, type Because } from "../../../shared/api/approvals.ts";
import type { Right } from "../../../shared/api/rights.ts";
import type { SiteId } from "../../../shared/ids.ts";
import type { Json } from "../../../shared/json.ts";
import { check, index, jsonb, pgTable, sql, text, uniqueIndex, uuid } from "../orm.ts";
import { at, createdAt, oneOf } from "./columns.ts";
import { maasSites } from "./maas-sites.ts";

/** Requests that need the approval of a second person (decision I11). Only `moveApproval` changes the state of an approval. */
export const approvals = pgTable(
  "approvals",
  {
    id: uuid("id").$type<ApprovalId>().primaryKey().default(sql`gen_random_uuid()`),
    operation: text("operation").notNull(),
    /** The right that the operation needs, and that the second person must have too. */
    neededRight: text("needed_right").$type<Right>().notNull(),
    siteId: uuid("site_id")
      .$type<SiteId>()
      .notNull()
      .references(() => maasSites.id),
    params: jsonb("params").$type<Readonly<Record<string, string>>>().notNull(),
    body: jsonb("body").$type<Json>().notNull(),
    /** The hash of the API operation with its parameters and body, by which the hub recognizes a repeated request. */
    requestSha256: text("request_sha256").notNull(),
    does: text("does").notNull(),
    because: jsonb("because").$type<Because>().notNull(),
    state: text("state", { enum: APPROVAL_STATES }).notNull().default("pending"),
    requestedBy: text("requested_by").notNull(),
    /** The owner of the credential that made the request and that may use the approval, `person:<subject>` or `token:<id>`. */
    requester: text("requester").notNull(),
    /** Everybody who may be the requester of the approval, because they have seen the secret of the requester's token. */
    requesterIds: text("requester_ids").array().notNull(),
    createdAt: createdAt(),
    expiresAt: at("expires_at").notNull(),
    decidedBy: text("decided_by"),
    /** The second person, `person:<subject>` or `token:<id>`; null until somebody has approved the request. */
    approver: text("approver"),
    /**
     * The claims of the access token with which a person approved the request, and the time at which this token expires. The claims and the end of
     * the approver's access token are null if nobody has approved the request, or if the approver used no access token.
     */
    approverClaims: jsonb("approver_claims").$type<Readonly<Record<string, unknown>>>(),
    approverUntil: at("approver_until"),
    decidedAt: at("decided_at"),
    decisionReason: text("decision_reason"),
    usedAt: at("used_at"),
  },
  (t) => [
    check("approvals_state_check", oneOf("state", APPROVAL_STATES)),
    // A request that its requester repeats while its approval is open gets the same approval.
    uniqueIndex("approvals_open_key").on(t.requester, t.requestSha256).where(sql`"state" in ('pending', 'approved')`),
    // Retention and the hub's periodic check for expired approvals find old rows by the index `approvals_age_idx`.
    index("approvals_age_idx").on(t.expiresAt),
  ],
);
export type ApprovalRow = typeof approvals.$inferSelect;
