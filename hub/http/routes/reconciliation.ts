import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { page } from "../../../shared/api/onboardings.ts";
import {
  Breaker,
  BreakerReset,
  Drift,
  DriftResolve,
  ReconciliationRequested,
  ReconciliationRun,
  ReconciliationStatus,
} from "../../../shared/api/reconciliation.ts";
import { DriftRule, DriftSeverity } from "../../../shared/drift.ts";
import { NodeId, SiteId } from "../../../shared/ids.ts";
import { databaseNow } from "../../db/queries/clock.ts";
import { recordDomainEvent } from "../../db/queries/domain-events.ts";
import { listDrift, readDrift, readReconciliationStatus, toBreaker } from "../../db/queries/drift-reads.ts";
import { requestPoll, requestSweep } from "../../db/queries/maas-site-watches.ts";
import { listBreakers, resetBreaker } from "../../db/queries/reconciler-breakers.ts";
import { ACCEPT_SECONDS } from "../../reconciler/breaker.ts";
import { resolveDrift } from "../../reconciler/resolve.ts";
import { pageOf, pageQuery, readCursor } from "../page.ts";
import { readRoute, writeRoute } from "../route.ts";
import { mustFindSite } from "./maas-sites.ts";

const tag = "reconciliation";
const path = "/api/v1/admin/reconciliation";

const getStatus = readRoute({
  operationId: "getReconciliationStatus",
  method: "GET",
  path: `${path}/status`,
  tag,
  summary: "Count each site's nodes that match MAAS, that differ from it, and that were not compared yet",
  permission: "read",
  right: "read_fleet",
  place: "list",
  query: z.strictObject({ site_id: SiteId.optional() }),
  status: 200,
  response: ReconciliationStatus,
  read: ({ query, actor, deps }) => readReconciliationStatus(deps.db, query.site_id, actor),
});

const listAllDrift = readRoute({
  operationId: "listDrift",
  method: "GET",
  path: `${path}/drift`,
  tag,
  summary: "List nodes that differ from their machines in MAAS",
  permission: "read",
  right: "read_fleet",
  place: "list",
  query: z.strictObject({
    ...pageQuery,
    node_id: NodeId.optional(),
    site_id: SiteId.optional(),
    rule: DriftRule.optional(),
    severity: DriftSeverity.optional(),
    include_acknowledged: z.enum(["true", "false"]).default("false"),
  }),
  status: 200,
  response: page(Drift),
  read: async ({ query, actor, deps }) => {
    const { node_id: nodeId, site_id: siteId, rule, severity, limit } = query;
    const filter = {
      nodeId,
      siteId,
      rule,
      severity,
      acknowledged: query.include_acknowledged === "true",
      reach: actor,
    };
    const after = readCursor(query.cursor, 2);
    const rows = await listDrift(deps.db, filter, { limit: limit + 1, after });
    return pageOf(
      rows,
      limit,
      (row) => [row.hostname, row.node_id],
      (row) => row,
    );
  },
});

const resolve = writeRoute({
  operationId: "resolveDrift",
  method: "POST",
  path: `${path}/drift/{node_id}/resolve`,
  tag,
  summary: "Acknowledge a node's drift, or return to service a node that the reconciler quarantined",
  permission: "write",
  right: "operate_nodes",
  place: { of: "node", param: "node_id" },
  params: z.strictObject({ node_id: NodeId }),
  body: DriftResolve,
  status: 200,
  response: Drift,
  write: async ({ params, body, actor }, tx) => {
    const { prior, status } = await resolveDrift(tx, params.node_id, body, actor.name, await databaseNow(tx));
    const drift = await readDrift(tx, params.node_id);
    if (drift === null) throw new ApiError("internal_error", "The drift cannot be read again.");
    return {
      body: drift,
      audit: {
        target: `nodes/${params.node_id}`,
        reason: body.reason,
        details: { action: body.action, prior, expected: { status, drift: null } },
      },
    };
  },
});

const run = writeRoute({
  operationId: "runReconciliation",
  method: "POST",
  path: `${path}/run`,
  tag,
  summary: "Read all machines of a site and compare all of its nodes now",
  permission: "write",
  right: "operate_nodes",
  place: { of: "site", body: "site_id" },
  body: ReconciliationRun,
  status: 202,
  response: ReconciliationRequested,
  write: async ({ body }, tx) => {
    const site = await mustFindSite(tx, body.site_id);
    if (site.status !== "active")
      throw new ApiError("conflict", `Site ${site.name} is disabled, so it is not watched. Enable it first.`);
    await requestPoll(tx, body.site_id, { sweep: true });
    return {
      body: { site_id: body.site_id, requested: true as const },
      audit: { target: `maas-sites/${body.site_id}` },
    };
  },
});

const listAllBreakers = readRoute({
  operationId: "listBreakers",
  method: "GET",
  path: `${path}/breakers`,
  tag,
  summary: "List the breakers that have ever stopped status changes of too many nodes at once",
  permission: "read",
  right: "read_fleet",
  place: "list",
  status: 200,
  response: z.strictObject({ items: z.array(Breaker) }),
  read: async ({ actor, deps }) => {
    const now = await databaseNow(deps.db);
    return { items: (await listBreakers(deps.db, actor)).map((row) => toBreaker(row, now)) };
  },
});

const reset = writeRoute({
  operationId: "resetBreaker",
  method: "POST",
  path: `${path}/breakers/{site_id}/reset`,
  tag,
  summary:
    "Reset a site's breaker, so that its nodes may change status again; with accept_drift without a limit for 15 minutes",
  permission: "write",
  right: "operate_nodes",
  place: { of: "site", param: "site_id" },
  params: z.strictObject({ site_id: SiteId }),
  body: BreakerReset,
  status: 200,
  response: Breaker,
  write: async ({ params, body, actor }, tx) => {
    const { site_id } = params;
    const { kind, accept_drift, reason } = body;
    const site = await mustFindSite(tx, site_id);
    const acceptSeconds = accept_drift ? ACCEPT_SECONDS : 0;
    const row = await resetBreaker(tx, site_id, kind, { by: actor.name, reason, acceptSeconds });
    if (row === null)
      throw new ApiError(
        "conflict",
        `The breaker '${kind}' of site ${site.name} is not open, so it holds nothing back. List the breakers to see which is.`,
      );
    await recordDomainEvent(tx, {
      type: "site.breaker.reset",
      subject: `maas-sites/${site_id}`,
      data: { site_id, kind, by: actor.name, accept_drift },
    });
    // A breaker stops changes of too many nodes of a site at once. After its reset, the hub compares the site with MAAS again, and makes the changes
    // that the breaker held back, unless the changes are no longer needed.
    await requestSweep(tx, site_id);
    return {
      body: toBreaker(row, await databaseNow(tx)),
      audit: { target: `maas-sites/${site_id}`, reason, details: { kind, accept_drift } },
    };
  },
});

export const reconciliationRoutes = [getStatus, listAllDrift, resolve, run, listAllBreakers, reset];
