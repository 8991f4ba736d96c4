import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { NodeId } from "../../../shared/ids.ts";
import { listHealthOverrides } from "../../db/queries/node-health-overrides.ts";
import type { NodeHealthOverride } from "../../db/schema/index.ts";
import { alertsOf } from "../../node/health-aggregate.ts";
import { parse } from "../problem.ts";
import type { Endpoint, NicoCall } from "./endpoint.ts";
import { idIn } from "./inputs.ts";
import { carryOutOwn } from "./own-route.ts";

const Alert = z.object({
  id: z.string(),
  target: z.string().nullish(),
  message: z.string(),
  tenantMessage: z.string().nullish(),
  classifications: z.array(z.string()).nullish(),
});
/**
 * A health report in NICo's form. Muster does not store the `successes` of a health report in NICo's form, because Muster's own conditions say what
 * works.
 */
const Report = z.object({
  source: z.string(),
  mode: z.enum(["Merge", "Replace"]),
  alerts: z.array(Alert).nullish(),
});

const toReport = (one: NodeHealthOverride) => ({
  source: one.source,
  mode: one.mode === "replace" ? "Replace" : "Merge",
  triggeredBy: one.setBy,
  observedAt: one.since.toISOString(),
  successes: [],
  alerts: alertsOf(one).map((alert) => ({
    id: alert.id,
    target: alert.target,
    inAlertSince: one.since.toISOString(),
    message: alert.message,
    tenantMessage: alert.tenant_message,
    classifications: alert.classifications,
  })),
});

async function reportsOf({ deps: { db }, params }: NicoCall) {
  return (await listHealthOverrides(db, [idIn(params, NodeId)])).map(toReport);
}

const list: Endpoint = {
  operationId: "nicoListHealthReports",
  method: "GET",
  path: "/machine/{id}/health-report",
  permission: "read",
  right: "read_fleet",
  place: { of: "node", param: "id" },
  status: 200,
  answer: async (call) => ({ body: await reportsOf(call) }),
};

const put: Endpoint = {
  operationId: "nicoPutHealthReport",
  method: "PUT",
  path: "/machine/{id}/health-report",
  permission: "write",
  right: "operate_nodes",
  place: { of: "node", param: "id" },
  status: 200,
  answer: async (call) => {
    const { source, mode, alerts } = parse(Report, call.body, "body");
    await carryOutOwn(call, "setNodeHealthOverride", {
      id: idIn(call.params, NodeId),
      body: {
        source,
        mode: mode === "Replace" ? "replace" : "merge",
        alerts: (alerts ?? []).map(({ id, target, message, tenantMessage, classifications }) => ({
          id,
          target: target ?? null,
          message,
          tenant_message: tenantMessage ?? null,
          classifications: classifications ?? [],
        })),
        reason: alerts?.[0]?.message ?? "Reported by a client of NICo's API",
      },
    });
    const found = (await reportsOf(call)).find((one) => one.source === source);
    if (found === undefined) throw new ApiError("conflict", `The report ${source} was removed meanwhile.`);
    return { body: found };
  },
};

const remove: Endpoint = {
  operationId: "nicoDeleteHealthReport",
  method: "DELETE",
  path: "/machine/{id}/health-report/{source}",
  permission: "write",
  right: "operate_nodes",
  place: { of: "node", param: "id" },
  status: 204,
  answer: async (call) => {
    const reason = "Removed by a client of NICo's API";
    const id = idIn(call.params, NodeId);
    await carryOutOwn(call, "removeNodeHealthOverride", { id, body: { source: call.params["source"], reason } });
    return { body: null };
  },
};

export const nicoHealthReports = [list, put, remove];
