import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { RIGHT_NAMES, RIGHTS_OF } from "../../../shared/api/rights.ts";
import { API_ROLES } from "../../../shared/api/roles.ts";
import { SiteId } from "../../../shared/ids.ts";
import { isMigrated } from "../../db/migrate.ts";
import { requestPoll } from "../../db/queries/maas-site-watches.ts";
import { SECRET_ERRORS } from "../../secrets/port.ts";
import { within } from "../../timing/pause.ts";
import { readRoute, writeRoute } from "../route.ts";
import { mustFindSite } from "./maas-sites.ts";

const tag = "health";
/** The reason why the hub cannot use its secret store, or `ok` if it can. The hub checks its secret store every few seconds, not for each request. */
const StoreCode = z.enum(["ok", ...SECRET_ERRORS]);

const live = readRoute({
  operationId: "getLiveness",
  method: "GET",
  path: "/healthz",
  tag,
  summary: "Check that the process answers",
  permission: "public",
  right: "none",
  place: "everywhere",
  status: 200,
  response: z.strictObject({ status: z.literal("ok") }),
  read: async () => ({ status: "ok" as const }),
});

/** A load balancer marks a hub as down that does not answer a check, so `/readyz` reports within `READY_WITHIN_MS` that the database does not answer. */
const READY_WITHIN_MS = 2_000;

const ready = readRoute({
  operationId: "getReadiness",
  method: "GET",
  path: "/readyz",
  tag,
  summary:
    "Does the database answer, with the schema of this version or a newer one? Also reports the secret store's state, which does not make the hub unready",
  permission: "public",
  right: "none",
  place: "everywhere",
  status: 200,
  response: z.strictObject({ status: z.literal("ok"), secret_store: StoreCode }),
  read: async ({ deps }) => {
    const migrated = await within(READY_WITHIN_MS, isMigrated(deps.db)).catch((error: unknown) => {
      throw new ApiError("unavailable", "The hub's database does not answer.", { cause: error });
    });
    if (migrated === null) throw new ApiError("unavailable", "The hub's database does not answer.");
    if (!migrated)
      throw new ApiError("unavailable", "The hub's database is older than this hub. Restart the hub to migrate it.");
    return { status: "ok" as const, secret_store: deps.secretStore().code };
  },
});

const status = readRoute({
  operationId: "getHubStatus",
  method: "GET",
  path: "/api/v1/admin/status",
  tag,
  summary: "Show this hub, the number of its agents, and whether it can use its secret store",
  permission: "read",
  right: "use_hub",
  place: "everywhere",
  status: 200,
  response: z.strictObject({
    hub_id: z.string(),
    version: z.string(),
    agents: z.int(),
    you: z
      .strictObject({ name: z.string(), role: z.enum(API_ROLES), rights: z.array(z.enum(RIGHT_NAMES)) })
      .describe("Name, role and rights of the caller"),
    secret_store: z.strictObject({
      code: StoreCode,
      detail: z.string().nullable().describe("What happened and what to do next; null when all is well"),
      since: z.iso.datetime(),
    }),
  }),
  read: async ({ deps, actor: { name, role } }) => {
    const { code, detail, since } = deps.secretStore();
    return {
      ...deps.status(),
      you: { name, role, rights: [...RIGHTS_OF[role]] },
      secret_store: { code, detail, since: since.toISOString() },
    };
  },
});

/**
 * A program at the site may call the route `wakeMaasSiteWatcher` after a change in MAAS. A call of `wakeMaasSiteWatcher` makes the site's watcher
 * poll MAAS, and the hub takes no facts from the call (decision M8).
 */
const wake = writeRoute({
  operationId: "wakeMaasSiteWatcher",
  method: "POST",
  path: "/internal/v1/maas-sites/{id}/wake",
  tag: "maas-sites",
  summary: "Wake the site's watcher, which then polls at once",
  permission: "write",
  right: "report_signals",
  place: { of: "site", param: "id" },
  params: z.strictObject({ id: SiteId }),
  status: 202,
  response: z.strictObject({ requested: z.literal(true) }),
  write: async ({ params }, tx) => {
    await mustFindSite(tx, params.id);
    await requestPoll(tx, params.id, { sweep: false });
    return { body: { requested: true as const }, audit: { target: `maas-sites/${params.id}` } };
  },
});

export const healthRoutes = [live, ready, status, wake];
