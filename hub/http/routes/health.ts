import { sql } from "drizzle-orm";
import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { SiteId } from "../../../shared/ids.ts";
import { isMigrated } from "../../db/migrate.ts";
import { maasSiteWatches } from "../../db/schema/index.ts";
import { readRoute, writeRoute } from "../route.ts";
import { mustFindSite } from "./maas-sites.ts";

const tag = "health";

const live = readRoute({
  operationId: "getLiveness",
  method: "GET",
  path: "/healthz",
  tag,
  summary: "Does the process answer?",
  permission: "public",
  status: 200,
  response: z.strictObject({ status: z.literal("ok") }),
  read: async () => ({ status: "ok" as const }),
});

const ready = readRoute({
  operationId: "getReadiness",
  method: "GET",
  path: "/readyz",
  tag,
  summary: "Does the database answer, with the schema of this version or a newer one?",
  permission: "public",
  status: 200,
  response: z.strictObject({ status: z.literal("ok") }),
  read: async ({ deps }) => {
    const migrated = await isMigrated(deps.db).catch((error: unknown) => {
      throw new ApiError("unavailable", "The hub's database does not answer.", { cause: error });
    });
    if (!migrated)
      throw new ApiError("unavailable", "The hub's database is older than this hub. Restart the hub to migrate it.");
    return { status: "ok" as const };
  },
});

const status = readRoute({
  operationId: "getHubStatus",
  method: "GET",
  path: "/api/v1/admin/status",
  tag,
  summary: "What this hub is and how many agents it holds",
  permission: "read",
  status: 200,
  response: z.strictObject({ hub_id: z.string(), version: z.string(), agents: z.int() }),
  read: async ({ deps }) => deps.status(),
});

/** A site's own bridge may ring; nothing is believed from the call itself (decision M8). */
const wake = writeRoute({
  operationId: "wakeMaasSiteWatcher",
  method: "POST",
  path: "/internal/v1/maas-sites/{id}/wake",
  tag: "maas-sites",
  summary: "Have the site's watcher look at once",
  permission: "write",
  params: z.strictObject({ id: SiteId }),
  status: 202,
  response: z.strictObject({ requested: z.literal(true) }),
  write: async ({ params }, tx) => {
    await mustFindSite(tx, params.id);
    await tx
      .insert(maasSiteWatches)
      .values({ siteId: params.id, wakeRequestedAt: sql`now()` })
      .onConflictDoUpdate({ target: maasSiteWatches.siteId, set: { wakeRequestedAt: sql`now()` } });
    return { body: { requested: true as const }, audit: { target: `maas-sites/${params.id}` } };
  },
});

export const healthRoutes = [live, ready, status, wake];
