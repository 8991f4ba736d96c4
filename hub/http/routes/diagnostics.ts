import { Diagnostics } from "../../diagnostics/take.ts";
import { readRoute } from "../route.ts";

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

export const diagnosticsRoutes = [getDiagnostics];
