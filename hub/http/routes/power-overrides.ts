import { randomUUID } from "node:crypto";
import { and, asc, eq, gt, sql } from "drizzle-orm";
import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { page } from "../../../shared/api/onboardings.ts";
import { PowerOverride, PowerOverrideCreate } from "../../../shared/api/sites.ts";
import { Hostname, IpAddress, MacAddress } from "../../../shared/api/values.ts";
import { SiteId } from "../../../shared/ids.ts";
import { type MaasPowerCredentialOverride, maasPowerCredentialOverrides } from "../../db/schema/index.ts";
import { SECRET_PATHS } from "../../secrets/port.ts";
import { PageQuery, pageOf, readCursor } from "../page.ts";
import { readRoute, writeRoute } from "../route.ts";
import { mustFindSite, SiteParams } from "./maas-sites.ts";
import { isUniqueViolation } from "./rows.ts";

const tag = "power-credential-overrides";
const path = "/api/v1/admin/maas-sites/{id}/power-credential-overrides";
const SELECTORS = { hostname: Hostname, ipmi_ip: IpAddress, pxe_mac: MacAddress } as const;

const toOverride = (row: MaasPowerCredentialOverride): z.input<typeof PowerOverride> => ({
  id: row.id,
  site_id: row.siteId,
  selector_type: row.selectorType,
  selector_value: row.selectorValue,
  status: row.status,
  created_at: row.createdAt.toISOString(),
  updated_at: row.updatedAt.toISOString(),
});

const createPowerOverride = writeRoute({
  operationId: "createPowerCredentialOverride",
  method: "POST",
  path,
  tag,
  summary: "Give one host a BMC login of its own; the login goes to the secret store",
  permission: "write",
  params: SiteParams,
  body: PowerOverrideCreate,
  status: 201,
  response: PowerOverride,
  before: async ({ params, body, deps }) => {
    await mustFindSite(deps.db, params.id);
    const value = SELECTORS[body.selector_type].safeParse(body.selector_value);
    if (!value.success) {
      throw new ApiError("validation_failed", `selector_value is no ${body.selector_type}.`, {
        errors: [{ pointer: "/selector_value", message: value.error.issues[0]?.message ?? "is not valid" }],
      });
    }
    const id = randomUUID();
    await deps.secrets.write(SECRET_PATHS.powerOverride(params.id, id), { user: body.user, pass: body.pass });
    return id;
  },
  abandon: ({ params, deps }, id) => deps.secrets.remove(SECRET_PATHS.powerOverride(params.id, id)),
  write: async ({ params, body }, tx, id) => {
    const vaultPath = SECRET_PATHS.powerOverride(params.id, id);
    const [row] = await tx
      .insert(maasPowerCredentialOverrides)
      .values({
        id,
        siteId: params.id,
        selectorType: body.selector_type,
        selectorValue: body.selector_value,
        vaultPath,
      })
      .returning()
      .catch((error: unknown) => {
        throw isUniqueViolation(error)
          ? new ApiError("name_taken", "There is an override for this host already. Delete it first.", {
              errors: [{ pointer: "/selector_value", message: "is taken" }],
            })
          : error;
      });
    if (row === undefined) throw new ApiError("internal_error", "The override was not written.");
    return {
      body: toOverride(row),
      audit: {
        target: `power-credential-overrides/${id}`,
        details: { selector_type: body.selector_type, selector_value: body.selector_value },
      },
    };
  },
});

const listPowerOverrides = readRoute({
  operationId: "listPowerCredentialOverrides",
  method: "GET",
  path,
  tag,
  summary: "List a site's power overrides",
  permission: "read",
  params: SiteParams,
  query: PageQuery,
  status: 200,
  response: page(PowerOverride),
  read: async ({ params, query, deps }) => {
    await mustFindSite(deps.db, params.id);
    const after = readCursor(query.cursor, 1);
    const t = maasPowerCredentialOverrides;
    const where = and(eq(t.siteId, params.id), after === null ? undefined : gt(sql`${t.id}::text`, after[0] ?? ""));
    const rows = await deps.db
      .select()
      .from(t)
      .where(where)
      .orderBy(asc(sql`${t.id}::text`))
      .limit(query.limit + 1);
    return pageOf(rows, query.limit, (row) => [row.id], toOverride);
  },
});

const deletePowerOverride = writeRoute({
  operationId: "deletePowerCredentialOverride",
  method: "DELETE",
  path: `${path}/{override_id}`,
  tag,
  summary: "Remove an override and its secret",
  permission: "write",
  params: z.strictObject({ id: SiteId, override_id: z.uuid() }),
  status: 204,
  response: z.null(),
  before: async ({ params, deps }) => {
    const t = maasPowerCredentialOverrides;
    const [row] = await deps.db
      .update(t)
      .set({ status: "disabled", updatedAt: sql`now()` })
      .where(and(eq(t.id, params.override_id), eq(t.siteId, params.id)))
      .returning();
    if (row === undefined)
      throw new ApiError("not_found", `Site ${params.id} has no power override ${params.override_id}.`);
    // Disabled first: nothing may read a path whose secret is gone.
    await deps.secrets.remove(row.vaultPath);
  },
  write: async ({ params }, tx) => {
    await tx.delete(maasPowerCredentialOverrides).where(eq(maasPowerCredentialOverrides.id, params.override_id));
    return { body: null, audit: { target: `power-credential-overrides/${params.override_id}` } };
  },
});

export const powerOverrideRoutes = [createPowerOverride, listPowerOverrides, deletePowerOverride];
