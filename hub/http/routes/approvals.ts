import { z } from "zod";
import { APPROVAL_STATES, Approval, ApprovalDecision, ApprovalId } from "../../../shared/api/approvals.ts";
import { page } from "../../../shared/api/onboardings.ts";
import { oneOrMore } from "../../../shared/api/query-values.ts";
import { SiteId } from "../../../shared/ids.ts";
import { type FoundApproval, listApprovals, readApproval } from "../../db/queries/approvals.ts";
import { isoOrNull } from "../../db/queries/workflow-views.ts";
import type { Db, Tx } from "../../db/tx.ts";
import type { Actor } from "../../people/actor.ts";
import { grantApproval, refuseApproval, whyNotGrant } from "../../people/approvals/decide-approval.ts";
import { callerKey } from "../../people/approvals/identities.ts";
import { noApproval } from "../../people/approvals/no-approval.ts";
import { pageOf, pageQuery, readBefore } from "../page.ts";
import { readRoute, sourceOf, writeRoute } from "../route.ts";

const tag = "approvals";
const path = "/api/v1/admin/approvals";
const ApprovalParams = z.strictObject({ id: ApprovalId });

/** The answer says whether the caller may grant the approval, so that the console need not know the rules about second persons. */
const toApproval = async (db: Db | Tx, row: FoundApproval, actor: Actor): Promise<z.input<typeof Approval>> => ({
  id: row.id,
  state: row.stateNow,
  operation: row.operation,
  does: row.does,
  because: row.because,
  params: row.params,
  body: row.body,
  site_id: row.siteId,
  requested_by: row.requestedBy,
  requested_by_you: row.requester === callerKey(actor),
  cannot_grant: await whyNotGrant(db, row, actor),
  requested_at: row.createdAt.toISOString(),
  expires_at: row.expiresAt.toISOString(),
  decided_by: row.decidedBy,
  decided_at: isoOrNull(row.decidedAt),
  decision_reason: row.decisionReason,
  used_at: isoOrNull(row.usedAt),
});

async function mustFind(db: Db | Tx, id: ApprovalId): Promise<FoundApproval> {
  const row = await readApproval(db, id);
  if (row === null) throw noApproval(id);
  return row;
}

const States = oneOrMore(z.enum(APPROVAL_STATES), "The state of the approval");

const list = readRoute({
  operationId: "listApprovals",
  method: "GET",
  path,
  tag,
  summary: "List requests that wait or waited for a second person, newest first",
  permission: "read",
  right: "read_fleet",
  place: "list",
  query: z.strictObject({ ...pageQuery, state: States.optional(), site_id: SiteId.optional() }),
  status: 200,
  response: page(Approval),
  read: async ({ query, actor, deps }) => {
    const filter = { states: query.state, siteId: query.site_id, reach: actor };
    const rows = await listApprovals(deps.db, filter, { before: readBefore(query.cursor), limit: query.limit + 1 });
    const { items, ...rest } = pageOf(
      rows,
      query.limit,
      ({ at, id }) => [at, id],
      (row) => row,
    );
    const shown: z.input<typeof Approval>[] = [];
    for (const row of items) shown.push(await toApproval(deps.db, row, actor));
    return { ...rest, items: shown };
  },
});

const get = readRoute({
  operationId: "getApproval",
  method: "GET",
  path: `${path}/{id}`,
  tag,
  summary: "Read a request that waits or waited for a second person: what it does, who asked, who decided",
  permission: "read",
  right: "read_fleet",
  place: { of: "approval", param: "id" },
  params: ApprovalParams,
  status: 200,
  response: Approval,
  read: async ({ params, actor, deps }) => toApproval(deps.db, await mustFind(deps.db, params.id), actor),
});

const deciding = (verb: "grant" | "refuse") =>
  writeRoute({
    operationId: `${verb}Approval`,
    method: "POST",
    path: `${path}/{id}/${verb}`,
    tag,
    summary:
      verb === "grant"
        ? "Approve a request of somebody else, who may then send it again once; needs the right of the request"
        : "Refuse a request of somebody else, also after its approval, or withdraw a request of your own",
    permission: "write",
    right: "operate_nodes",
    place: { of: "approval", param: "id" },
    params: ApprovalParams,
    body: ApprovalDecision,
    status: 200,
    response: Approval,
    write: async (call, tx) => {
      const { params, body, actor } = call;
      const decide = verb === "grant" ? grantApproval : refuseApproval;
      await decide(tx, params.id, body.reason, { actor, source: sourceOf(call) });
      const now = await mustFind(tx, params.id);
      const { operation, does, requestedBy } = now;
      const details = { state: now.state, operation, does, requested_by: requestedBy };
      return {
        body: await toApproval(tx, now, actor),
        audit: { target: `approvals/${params.id}`, reason: body.reason, details },
      };
    },
  });

export const approvalRoutes = [list, get, deciding("grant"), deciding("refuse")];
