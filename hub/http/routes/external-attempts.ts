import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import {
  ExternalAbandon,
  ExternalAdopt,
  ExternalAttempt,
  ExternalAttemptDetail,
  ExternalBegin,
  ExternalBegun,
  ExternalComplete,
  ExternalFail,
  ExternalInventory,
  ExternalProgress,
  ExternalReconciled,
  ExternalReported,
} from "../../../shared/api/external-attempts.ts";
import { page } from "../../../shared/api/onboardings.ts";
import { Hostname } from "../../../shared/api/values.ts";
import { ExternalStatus, STATUS_OF_STATE } from "../../../shared/external-attempt.ts";
import { ExternalAttemptId, NodeId } from "../../../shared/ids.ts";
import { type ExternalAttemptView, listAttempts, readAttempt } from "../../db/queries/external-attempts.ts";
import { isoOrNull } from "../../db/queries/workflow-views.ts";
import type { Db, Tx } from "../../db/tx.ts";
import { lackOfNode } from "../../node/external/admit-node.ts";
import { holdsNode, isLeased, NEXT_ACTION } from "../../node/external/attempt-table.ts";
import { beginAttempt } from "../../node/external/begin-attempt.ts";
import { reconcileInventory } from "../../node/external/reconcile-inventory.ts";
import { type Report, reportAttempt } from "../../node/external/report-attempt.ts";
import { pageOf, pageQuery, readBefore } from "../page.ts";
import { type Route, readRoute, writeRoute } from "../route.ts";
import { issueCommand } from "./manual-nodes.ts";

const path = "/api/v1/admin/external-attempts";
const tag = "external provisioning";
const Params = z.strictObject({ id: ExternalAttemptId });
/** An adopted host was provisioned long ago, so its provisioning attempt waits only until the node's conditions are met. */
const ADOPTED = { lease_seconds: 60, deadline_seconds: 300 } as const;

const toAttempt = ({ attempt: row, node, isSuperseded }: ExternalAttemptView): z.input<typeof ExternalAttempt> => ({
  id: row.id,
  node_id: row.nodeId,
  hostname: node.hostname,
  site_id: row.siteId,
  number: row.number,
  superseded: isSuperseded,
  generation: row.generation,
  provisioner: row.provisioner,
  provisioned_by: "external",
  network_owned_by: node.networkOwnedBy,
  agent: node.runsAgent ? "muster" : "none",
  holder: row.holder,
  status: STATUS_OF_STATE[row.state],
  step: row.step,
  percent: row.percent,
  reason: row.reason,
  failure_code: row.failureCode,
  next_action: isSuperseded ? null : NEXT_ACTION[row.state],
  begun_at: row.begunAt.toISOString(),
  reported_at: row.heardAt.toISOString(),
  changed_at: row.changedAt.toISOString(),
  lease_expires_at: !isSuperseded && isLeased(row.state) ? row.leaseExpiresAt.toISOString() : null,
  deadline_at: !isSuperseded && holdsNode(row.state) ? row.deadlineAt.toISOString() : null,
  provisioned_at: isoOrNull(row.provisionedAt),
  facts: row.facts,
  late_reports: row.lateReports,
  last_late_report: row.lastLateReport,
});

async function mustFind(db: Db | Tx, id: ExternalAttemptId): Promise<ExternalAttemptView> {
  const view = await readAttempt(db, id);
  if (view === null) throw new ApiError("not_found", `There is no external attempt ${id}.`);
  return view;
}

const begin = writeRoute({
  operationId: "beginExternalAttempt",
  method: "POST",
  path,
  tag,
  summary: "Begin an attempt of an external system to provision a host; the node is created if the hub knows none",
  permission: "write",
  right: "provision_hosts",
  place: { of: "site", body: "site_id" },
  answersSecret: true,
  body: ExternalBegin,
  status: 201,
  response: ExternalBegun,
  write: async ({ body, actor, deps }, tx) => {
    const { node, attempt } = await beginAttempt(tx, { ...body, adopted: false }, actor.name);
    const command = node.runsAgent ? (await issueCommand(tx, deps, node, body.deadline_seconds)).body : null;
    return {
      body: {
        attempt: toAttempt(await mustFind(tx, attempt.id)),
        bootstrap_command: command?.bootstrap_command ?? null,
        expires_at: command?.expires_at ?? null,
      },
      audit: {
        target: `nodes/${node.id}`,
        details: { attempt_id: attempt.id, provisioner: body.provisioner, agent: body.agent },
      },
    };
  },
});

const adopt = writeRoute({
  operationId: "adoptExternalHost",
  method: "POST",
  path: `${path}/adopt`,
  tag,
  summary: "Adopt a host that an external system provisioned earlier; it comes into service when its conditions allow",
  permission: "write",
  right: "provision_hosts",
  place: { of: "site", body: "site_id" },
  answersSecret: true,
  body: ExternalAdopt,
  status: 201,
  response: ExternalBegun,
  write: async ({ body: { facts, ...about }, actor, deps }, tx) => {
    const { node, attempt } = await beginAttempt(tx, { ...about, ...ADOPTED, adopted: true }, actor.name);
    const command = node.runsAgent ? (await issueCommand(tx, deps, node, about.ready_within_seconds)).body : null;
    await reportAttempt(tx, attempt.id, { kind: "complete", facts }, actor.name);
    return {
      body: {
        attempt: toAttempt(await mustFind(tx, attempt.id)),
        bootstrap_command: command?.bootstrap_command ?? null,
        expires_at: command?.expires_at ?? null,
      },
      audit: {
        target: `nodes/${node.id}`,
        details: { attempt_id: attempt.id, provisioner: about.provisioner, agent: about.agent },
      },
    };
  },
});

const list = readRoute({
  operationId: "listExternalAttempts",
  method: "GET",
  path,
  tag,
  summary: "List attempts of external systems to provision hosts, the newest first",
  permission: "read",
  right: "read_nodes",
  place: "list",
  query: z.strictObject({
    ...pageQuery,
    node_id: NodeId.optional(),
    hostname: Hostname.optional(),
    status: ExternalStatus.optional(),
    provisioner: z.string().min(1).max(128).optional(),
  }),
  status: 200,
  response: page(ExternalAttempt),
  read: async ({ query, actor, deps }) => {
    const { node_id: nodeId, hostname, status, provisioner } = query;
    const rows = await listAttempts(
      deps.db,
      { nodeId, hostname, status, provisioner, reach: actor },
      { before: readBefore(query.cursor), limit: query.limit + 1 },
    );
    return pageOf(rows, query.limit, ({ attempt, at }) => [at, attempt.id], toAttempt);
  },
});

const get = readRoute({
  operationId: "getExternalAttempt",
  method: "GET",
  path: `${path}/{id}`,
  tag,
  summary: "Read an attempt of an external system, with what the node still lacks to become ready",
  permission: "read",
  right: "read_nodes",
  place: { of: "external_attempt", param: "id" },
  params: Params,
  status: 200,
  response: ExternalAttemptDetail,
  read: async ({ params, deps }) => {
    const view = await mustFind(deps.db, params.id);
    const waits = !view.isSuperseded && ["verifying", "unverified"].includes(view.attempt.state);
    return { ...toAttempt(view), waiting_for: waits ? await lackOfNode(deps.db, view.attempt.nodeId) : [] };
  },
});

const reportRoute = <Body extends z.ZodType>(
  operationId: string,
  verb: Report["kind"],
  summary: string,
  body: Body,
  toReport: (body: z.output<Body>) => Report,
) =>
  writeRoute({
    operationId,
    method: "POST",
    path: `${path}/{id}/${verb}`,
    tag,
    summary,
    permission: "write",
    right: "provision_hosts",
    place: { of: "external_attempt", param: "id" },
    params: Params,
    body,
    status: 202,
    response: ExternalReported,
    write: async ({ params, body: given, actor }, tx) => {
      const reported = await reportAttempt(tx, params.id, toReport(given as z.output<Body>), actor.name);
      const view = await mustFind(tx, params.id);
      return {
        body: { ...reported, attempt: toAttempt(view) },
        audit: {
          target: `nodes/${view.attempt.nodeId}`,
          details: { attempt_id: params.id, report: verb, outcome: reported.outcome },
        },
      };
    },
  });

const reports = [
  reportRoute(
    "reportExternalProgress",
    "progress",
    "Report progress of an attempt, which renews its lease",
    ExternalProgress,
    ({ step, percent }) => ({ kind: "progress", step, percent }),
  ),
  reportRoute(
    "completeExternalAttempt",
    "complete",
    "Report that the external system has provisioned the host; the node's conditions then decide",
    ExternalComplete,
    ({ facts }) => ({ kind: "complete", facts }),
  ),
  reportRoute(
    "failExternalAttempt",
    "fail",
    "Report that the external system could not provision the host",
    ExternalFail,
    ({ code, message }) => ({ kind: "fail", code, message }),
  ),
  reportRoute(
    "abandonExternalAttempt",
    "abandon",
    "Give up an attempt, so that another one may begin; also somebody else's",
    ExternalAbandon,
    ({ reason }) => ({ kind: "abandon", reason }),
  ),
];

const reconcile = writeRoute({
  operationId: "reconcileExternalHosts",
  method: "POST",
  path: `${path}/reconcile`,
  tag,
  summary: "Compare the hosts of an external system with what the hub knows, and record what the hub has not heard",
  permission: "write",
  right: "provision_hosts",
  place: { of: "site", body: "site_id" },
  body: ExternalInventory,
  status: 200,
  response: ExternalReconciled,
  write: async ({ body, actor }, tx) => {
    const hosts = await reconcileInventory(tx, body, actor.name);
    const applied = hosts.filter((one) => one.applied).length;
    return {
      body: { applied, hosts },
      audit: { target: "external-attempts", details: { provisioner: body.provisioner, hosts: hosts.length, applied } },
    };
  },
});

export const externalAttemptRoutes: readonly Route[] = [begin, adopt, list, get, ...reports, reconcile];
