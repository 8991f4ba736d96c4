import { z } from "zod";
import { Diagnostics } from "../../diagnostics/take.ts";
import { Produced, readRoute } from "../route.ts";

const getDiagnostics = readRoute({
  operationId: "getDiagnostics",
  method: "GET",
  path: "/api/v1/admin/diagnostics",
  tag: "health",
  summary:
    "One document for somebody who helps: the state of this hub, its database and its fleet, without secrets; also while the database is unavailable",
  permission: "read",
  right: "read_fleet",
  place: "hub",
  withoutDatabase: true,
  status: 200,
  response: Diagnostics,
  read: async ({ deps, actor, requestId }) => {
    deps.log.info("diagnostics are taken", { actor: actor.name, request_id: requestId });
    return deps.takeDiagnostics();
  },
});

const getMetrics = readRoute({
  operationId: "getMetrics",
  method: "GET",
  path: "/metrics",
  tag: "health",
  summary:
    "Metrics of this hub and its fleet for Prometheus, in OpenMetrics if the header Accept asks for it; MUSTER_METRICS_PORT opens a listener for the metrics alone",
  permission: "read",
  right: "read_fleet",
  place: "hub",
  withoutDatabase: true,
  produces: "text/plain",
  status: 200,
  response: z.string(),
  read: async ({ deps, accept }) => {
    const { contentType, text } = await deps.metrics.scrape(accept);
    return new Produced(contentType, text);
  },
});

export const diagnosticsRoutes = [getDiagnostics, getMetrics];
