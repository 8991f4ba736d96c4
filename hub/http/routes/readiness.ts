import { randomBytes } from "node:crypto";
import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { ReadinessSignalTaken, ReportTokenIssued } from "../../../shared/api/readiness.ts";
import { CONDITION_TYPES } from "../../../shared/condition-types.ts";
import { NodeId } from "../../../shared/ids.ts";
import { ForeignReadinessSignal } from "../../../shared/readiness.ts";
import { KEPT_OF_A_NODE } from "../../db/kept.ts";
import { readOwnTypes } from "../../db/queries/node-conditions.ts";
import { lockNode } from "../../db/queries/nodes.ts";
import { isSignalOf } from "../../db/queries/readiness-signals.ts";
import { putReportToken } from "../../db/queries/report-tokens.ts";
import type { Node } from "../../db/schema/index.ts";
import type { Tx } from "../../db/tx.ts";
import { PHONE_HOME_PATH, REPORTING_PATH } from "../../gateway/cloud-init-routes.ts";
import { applyReadinessSignal } from "../../node/conditions.ts";
import { tokenHash } from "../../node/enrollment-tokens.ts";
import { admitExternalNode } from "../../node/external/admit-node.ts";
import { writeRoute } from "../route.ts";

const NodeParams = z.strictObject({ id: NodeId });
const path = "/api/v1/admin/nodes/{id}";
const tag = "readiness";

/** Locks the node until the transaction ends, so that the node's generation cannot change before a readiness signal of the node is written. */
async function livingNode(tx: Tx, id: NodeId): Promise<Node> {
  const node = await lockNode(tx, id);
  if (node === null) throw new ApiError("not_found", `There is no node ${id}.`);
  if (node.status === "deleted")
    throw new ApiError(
      "conflict",
      `Node ${node.hostname} was deleted and accepts no readiness signals. Onboard the host again.`,
    );
  return node;
}

const postReadinessSignal = writeRoute({
  operationId: "postReadinessSignal",
  method: "POST",
  path: `${path}/readiness-signals`,
  tag,
  summary: "Report conditions of a node as an external provisioning system, once for each signal_id",
  permission: "write",
  right: "report_signals",
  place: { of: "node", param: "id" },
  params: NodeParams,
  body: ForeignReadinessSignal,
  status: 202,
  response: ReadinessSignalTaken,
  write: async ({ params, body }, tx) => {
    const node = await livingNode(tx, params.id);
    await mustHaveRoom(tx, node, body);
    const outcome = await applyReadinessSignal(tx, node, "external", body);
    if (outcome === "known") await refuseForeignId(tx, node, body.signal_id);
    if (node.onboardingMode === "external") await admitExternalNode(tx, node.id);
    return {
      body: { signal_id: body.signal_id, outcome, node_generation: node.generation },
      audit: {
        target: `nodes/${node.id}`,
        details: { signal_id: body.signal_id, outcome, types: body.conditions.map(({ type }) => type) },
      },
    };
  },
});

/** The hub keeps a condition of an unknown type until somebody clears it, so the number of such conditions of one node is limited. */
async function mustHaveRoom(tx: Tx, node: Node, { conditions }: ForeignReadinessSignal): Promise<void> {
  const known = await readOwnTypes(tx, node.id);
  const told = conditions.map(({ type }) => type).filter((type) => !Object.hasOwn(CONDITION_TYPES, type));
  if (new Set([...known, ...told]).size > KEPT_OF_A_NODE.ownConditions)
    throw new ApiError(
      "conflict",
      `Node ${node.hostname} would have conditions of more than ${KEPT_OF_A_NODE.ownConditions} types that Muster does not know. Use fewer types, or clear the node's with POST /api/v1/admin/nodes/{id}/clear-reports.`,
    );
}

/**
 * Refuses a signal id that was used for another node. If the hub took a reused signal id for a repetition, the signal's sender would believe that the
 * hub accepted the new signal.
 */
async function refuseForeignId(tx: Tx, node: Node, signalId: string): Promise<void> {
  if (!(await isSignalOf(tx, node.id, signalId)))
    throw new ApiError(
      "conflict",
      `The signal_id ${signalId} was used for another node. Send a new signal_id for each signal.`,
    );
}

const issueReportToken = writeRoute({
  operationId: "issueReportToken",
  method: "POST",
  path: `${path}/report-token`,
  tag,
  summary: "Get the URLs to which a node's cloud-init reports in this generation; earlier URLs become void",
  permission: "write",
  right: "report_signals",
  place: { of: "node", param: "id" },
  answersSecret: true,
  params: NodeParams,
  status: 201,
  response: ReportTokenIssued,
  write: async ({ params, deps }, tx) => {
    const { id: nodeId, generation } = await livingNode(tx, params.id);
    // The report token is hexadecimal, because cloud-init would expand a `$` in the report URL, and other characters have a meaning in YAML.
    const token = randomBytes(32).toString("hex");
    await putReportToken(tx, { nodeId, generation, tokenSha256: tokenHash(token) });
    const base = deps.agentUrl.replace(/\/+$/, "");
    return {
      body: {
        node_id: nodeId,
        generation,
        token,
        phone_home_url: `${base}${PHONE_HOME_PATH}/${token}`,
        reporting_url: `${base}${REPORTING_PATH}/${token}`,
      },
      audit: { target: `nodes/${nodeId}`, details: { generation } },
    };
  },
});

export const readinessRoutes = [postReadinessSignal, issueReportToken];
