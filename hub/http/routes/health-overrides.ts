import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { HealthOverrideRemove, HealthOverrideSet, NodeHealth } from "../../../shared/api/health-overrides.ts";
import { HEALTH_TEMPLATES } from "../../../shared/health-report.ts";
import { NodeId } from "../../../shared/ids.ts";
import { databaseNow } from "../../db/queries/clock.ts";
import { listHealthOverrides } from "../../db/queries/node-health-overrides.ts";
import { readNode } from "../../db/queries/nodes.ts";
import { lockOpenCase } from "../../db/queries/repair-cases.ts";
import type { Node, NodeHealthOverride } from "../../db/schema/index.ts";
import type { Tx } from "../../db/tx.ts";
import { endExpiredOverrides, removeHealthOverride, setHealthOverride } from "../../node/health-override.ts";
import { isRepairMark } from "../../repair/apply-marks.ts";
import { verbsFrom } from "../../repair/case-moves.ts";
import { openByOperator } from "../../repair/open-repair.ts";
import { mustLockNode } from "../../workflows/decommission/start-decommission.ts";
import { readRoute, writeRoute } from "../route.ts";
import { toHealthOverrides, toNodeHealth } from "./health-override-rows.ts";

export const removeNodeHealthOverride = writeRoute({
  operationId: "removeNodeHealthOverride",
  method: "POST",
  path: "/api/v1/admin/nodes/{id}/remove-health-override",
  tag: "nodes",
  summary: "Remove a health override, so that it no longer keeps new work off the node",
  permission: "write",
  right: "operate_nodes",
  place: { of: "node", param: "id" },
  params: z.strictObject({ id: NodeId }),
  body: HealthOverrideRemove,
  status: 200,
  response: NodeHealth,
  write: async ({ params, body: { source, reason, expected_revision: expected }, actor }, tx) => {
    const node = await mustLockNode(tx, params.id);
    await mustNotBeOfRepair(tx, node, source);
    const stand = await listHealthOverrides(tx, [node.id]);
    mustBeExpected(node, source, { expected, found: stand.find((one) => one.source === source)?.revision ?? 0 });
    const removed = await removeHealthOverride(tx, node.id, source, { by: `operator:${actor.name}`, reason });
    const left = await listHealthOverrides(tx, [node.id]);
    if (removed === null) {
      const others = left.map((one) => one.source).join(", ") || "none";
      const message = `Node ${node.hostname} has no health override of the source ${source}. Its overrides: ${others}.`;
      throw new ApiError("not_found", message, { context: { node_id: node.id } });
    }
    const details = { prior: toHealthOverrides([removed])[0], expected: null };
    return {
      body: toNodeHealth(node.id, left),
      audit: { target: `nodes/${node.id}`, reason, details },
    };
  },
});

const read = readRoute({
  operationId: "getNodeHealth",
  method: "GET",
  path: "/api/v1/admin/nodes/{id}/health-overrides",
  tag: "nodes",
  summary: "Read the health overrides of a node, and the alerts that they raise together",
  permission: "read",
  right: "read_fleet",
  place: { of: "node", param: "id" },
  params: z.strictObject({ id: NodeId }),
  status: 200,
  response: NodeHealth,
  read: async ({ params, deps: { db } }) => {
    if ((await readNode(db, params.id)) === null) throw new ApiError("not_found", `There is no node ${params.id}.`);
    return toNodeHealth(params.id, await listHealthOverrides(db, [params.id]));
  },
});

/** Returns the source, mode and alerts of a health override: those of the template that the request names, or else those in the request. */
function meant(body: HealthOverrideSet): Pick<NodeHealthOverride, "source" | "mode" | "alerts"> {
  if (body.template === undefined)
    return { source: body.source ?? "", mode: body.mode ?? "merge", alerts: body.alerts ?? [] };
  const { source, mode, alert } = HEALTH_TEMPLATES[body.template];
  const message = { message: body.message ?? "", tenant_message: body.tenant_message ?? null };
  const alerts = alert === null ? [] : [{ ...alert, ...message, classifications: [...alert.classifications] }];
  return { source, mode, alerts };
}

const set = writeRoute({
  operationId: "setNodeHealthOverride",
  method: "POST",
  path: "/api/v1/admin/nodes/{id}/health-overrides",
  tag: "nodes",
  summary: "Say what is wrong with a node, by a template or by alerts, and what that prevents",
  permission: "write",
  right: "operate_nodes",
  place: { of: "node", param: "id" },
  params: z.strictObject({ id: NodeId }),
  body: HealthOverrideSet,
  status: 200,
  response: NodeHealth,
  write: async ({ params, body, actor }, tx) => {
    const node = await mustLockNode(tx, params.id);
    if (node.status === "deleted")
      throw new ApiError("conflict", `Node ${node.hostname} is deleted, so it takes no health override.`, {
        context: { node_id: node.id },
      });
    await endExpiredOverrides(tx, 1_000, node.id);
    const stand = await listHealthOverrides(tx, [node.id]);
    const { source, mode, alerts } = meant(body);
    await mustNotBeOfRepair(tx, node, source);
    const prior = stand.find((one) => one.source === source);
    mustBeExpected(node, source, { expected: body.expected_revision, found: prior?.revision ?? 0 });
    mustHaveRoom(node, stand, { source, mode });
    const minutes = body.expires_in_minutes;
    const expiresAt = minutes === undefined ? null : new Date((await databaseNow(tx)).getTime() + minutes * 60_000);
    const { reason } = body;
    const setBy = `operator:${actor.name}`;
    const override = { nodeId: node.id, target: null, source, mode, alerts, reason, setBy, expiresAt };
    if (source === REPAIR_REQUEST) await openRequested(tx, node, { override, actor: actor.name });
    else await setHealthOverride(tx, override);
    const now = await listHealthOverrides(tx, [node.id]);
    const written = now.find((one) => one.source === source);
    const told = (row: NodeHealthOverride | undefined) => (row === undefined ? null : toHealthOverrides([row])[0]);
    return {
      body: toNodeHealth(node.id, now),
      audit: { target: `nodes/${node.id}`, reason, details: { prior: told(prior), expected: told(written) } },
    };
  },
});

const REPAIR_REQUEST = HEALTH_TEMPLATES.RequestRepair.source;

interface Requested {
  readonly override: Pick<NodeHealthOverride, "mode" | "alerts" | "expiresAt" | "reason">;
  readonly actor: string;
}

/** What a request for repair says that a repair case would not keep. The repair case writes the alert and the text for tenants itself. */
function notOfRequest({ mode, alerts, expiresAt }: Requested["override"]): readonly [string, string] | null {
  const [alert, ...others] = alerts ?? [];
  const known: readonly string[] = HEALTH_TEMPLATES.RequestRepair.alert.classifications;
  if (expiresAt !== null)
    return ["/expires_in_minutes", "does not go with a request for repair, which ends by the verbs of its repair"];
  if (mode === "replace") return ["/mode", "is merge for a request for repair"];
  if (others.length > 0) return ["/alerts", "has one alert for a request for repair"];
  if (alert?.tenant_message != null)
    return ["/tenant_message", "does not go with a request for repair, whose case tells tenants"];
  return alert?.classifications.every((one) => known.includes(one)) === false
    ? ["/alerts/0/classifications", `are ${known.join(" and ")} for a request for repair`]
    : null;
}

/**
 * Opens a repair case and requests its repair, which sets the health override of the template `RequestRepair`. Without a case no repair system could claim
 * the machine. `mustNotBeOfRepair` has found that no case is open.
 */
async function openRequested(tx: Tx, node: Node, { override, actor }: Requested): Promise<void> {
  const wrong = notOfRequest(override);
  if (wrong !== null) {
    const [pointer, message] = wrong;
    throw new ApiError(
      "validation_failed",
      `A request for repair opens a repair case, so ${pointer.slice(1)} ${message}.`,
      {
        errors: [{ pointer, message }],
      },
    );
  }
  const { alerts, reason } = override;
  const issue = { category: "Other", summary: alerts?.[0]?.message ?? reason, details: null } as const;
  await openByOperator(tx, { node_id: node.id, machine_health_issue: issue, request: true, reason }, actor);
}

/**
 * The health overrides of an open repair follow the state of the repair. A person who changed a health override of an open repair by hand could
 * return a faulty machine to tenants.
 */
async function mustNotBeOfRepair(tx: Tx, { id, hostname }: Node, source: string): Promise<void> {
  const repair = isRepairMark(source) ? await lockOpenCase(tx, id) : null;
  if (repair === null) return;
  throw new ApiError(
    "conflict",
    `The health override ${source} of node ${hostname} belongs to repair ${repair.id} (${repair.state}). Change it by the repair: ${verbsFrom(repair.mode, repair.state).join(", ")}.`,
    { context: { node_id: id, repair_id: repair.id } },
  );
}

function mustBeExpected(
  { id, hostname }: Node,
  source: string,
  { expected, found }: { readonly expected: number | undefined; readonly found: number },
): void {
  if (expected === undefined || expected === found) return;
  const now = found === 0 ? "has no override" : `has revision ${found} of the override`;
  throw new ApiError(
    "precondition_failed",
    `Node ${hostname} ${now} ${source}, not revision ${expected}. Read the node's health overrides, and decide again.`,
    { context: { node_id: id } },
  );
}

/** The largest number of health overrides of a node. */
const MOST_OVERRIDES = 32;

function mustHaveRoom(
  { id, hostname }: Node,
  stand: readonly NodeHealthOverride[],
  { source, mode }: Pick<NodeHealthOverride, "source" | "mode">,
): void {
  const others = stand.filter((one) => one.source !== source);
  const replacement = others.find((one) => one.mode === "replace");
  const refuse = (message: string) => new ApiError("conflict", message, { context: { node_id: id } });
  if (mode === "replace" && replacement !== undefined)
    throw refuse(
      `Node ${hostname} has the replacement ${replacement.source} already, and a node has one at most. Remove it with remove-node-health-override first.`,
    );
  if (others.length >= MOST_OVERRIDES)
    throw refuse(
      `Node ${hostname} has ${others.length} health overrides, which is the most. Remove some of them first.`,
    );
}

export const healthOverrideRoutes = [removeNodeHealthOverride, read, set];
