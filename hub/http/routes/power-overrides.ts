import { randomUUID } from "node:crypto";
import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { page } from "../../../shared/api/onboardings.ts";
import { PowerOverride, PowerOverrideCreate, PowerOverridePatch } from "../../../shared/api/sites.ts";
import { Hostname, IpAddress, MacAddress } from "../../../shared/api/values.ts";
import { SiteId } from "../../../shared/ids.ts";
import { forgetCredentialFailures } from "../../db/queries/credential-uses.ts";
import { removerOfLogin } from "../../db/queries/decommission-secrets.ts";
import {
  changePowerOverride,
  disablePowerOverride,
  findPowerOverride,
  insertPowerOverride,
  type PowerOverrideRow,
  pageOfPowerOverrides,
  touchPowerOverride,
} from "../../db/queries/power-overrides.ts";
import type { Db, Tx } from "../../db/tx.ts";
import { SECRET_PATHS, SecretError } from "../../secrets/port.ts";
import { powerLogin } from "../../secrets/power-login.ts";
import { warningOf } from "../../workflows/onboarding/credential-warnings.ts";
import type { ApiDependencies } from "../deps.ts";
import { PageQuery, pageOf, readCursor } from "../page.ts";
import { readRoute, Versioned, writeRoute } from "../route.ts";
import { mustFindSite, SiteParams } from "./maas-sites.ts";
import { changedMeanwhile, isUniqueViolation, mustMatch } from "./rows.ts";

const OverrideParams = z.strictObject({ id: SiteId, override_id: z.uuid() });
type OverrideParams = z.output<typeof OverrideParams>;
const tag = "power-credential-overrides";
const path = "/api/v1/admin/maas-sites/{id}/power-credential-overrides";
const SELECTORS = { hostname: Hostname, ipmi_ip: IpAddress, pxe_mac: MacAddress } as const;

function toOverride({ override, use, inUse }: PowerOverrideRow): z.input<typeof PowerOverride> {
  const warning = inUse ? warningOf(use) : null;
  return {
    id: override.id,
    site_id: override.siteId,
    selector_type: override.selectorType,
    selector_value: override.selectorValue,
    status: override.status,
    last_used_at: use.lastUsedAt?.toISOString() ?? null,
    last_failed_at: use.lastFailedAt?.toISOString() ?? null,
    last_failure_code: use.lastFailureCode,
    warning: warning === null ? null : { ...warning, since: warning.since.toISOString() },
    created_at: override.createdAt.toISOString(),
    updated_at: override.updatedAt.toISOString(),
  };
}

async function mustFind(db: Db | Tx, params: OverrideParams): Promise<PowerOverrideRow> {
  const row = await findPowerOverride(db, params.id, params.override_id);
  if (row === null)
    throw new ApiError(
      "not_found",
      `Site ${params.id} has no power override ${params.override_id}. List the overrides of the site.`,
    );
  return row;
}

const createPowerOverride = writeRoute({
  operationId: "createPowerCredentialOverride",
  method: "POST",
  path,
  tag,
  summary: "Give one host a BMC login of its own; the login goes to the secret store",
  permission: "write",
  right: "configure_sites",
  place: { of: "site", param: "id" },
  params: SiteParams,
  body: PowerOverrideCreate,
  status: 201,
  response: PowerOverride,
  before: async ({ params, body, deps }) => {
    await mustFindSite(deps.db, params.id);
    const value = SELECTORS[body.selector_type].safeParse(body.selector_value);
    if (!value.success) {
      throw new ApiError("validation_failed", `selector_value is not a valid ${body.selector_type}.`, {
        errors: [{ pointer: "/selector_value", message: value.error.issues[0]?.message ?? "is not valid" }],
      });
    }
    const id = randomUUID();
    await deps.secrets.write(SECRET_PATHS.powerOverride(params.id, id), powerLogin(body));
    return id;
  },
  abandon: ({ params, deps }, id) => deps.secrets.remove(SECRET_PATHS.powerOverride(params.id, id)),
  write: async ({ params, body }, tx, id) => {
    const about = { selectorType: body.selector_type, selectorValue: body.selector_value };
    const row = { id, siteId: params.id, ...about, vaultPath: SECRET_PATHS.powerOverride(params.id, id) };
    await insertPowerOverride(tx, row).catch((error: unknown) => {
      throw isUniqueViolation(error) ? selectorTaken() : error;
    });
    return {
      body: toOverride(await mustFind(tx, { id: params.id, override_id: id })),
      audit: {
        target: `power-credential-overrides/${id}`,
        details: { selector_type: body.selector_type, selector_value: body.selector_value },
      },
    };
  },
});

const selectorTaken = (): ApiError =>
  new ApiError(
    "name_taken",
    "This host already has an override, which may be disabled. List the overrides of the site, and change the existing one.",
    { errors: [{ pointer: "/selector_value", message: "is taken" }] },
  );

const listPowerOverrides = readRoute({
  operationId: "listPowerCredentialOverrides",
  method: "GET",
  path,
  tag,
  summary: "List a site's power overrides, each with its last use and its faults",
  permission: "read",
  right: "read_fleet",
  place: { of: "site", param: "id" },
  params: SiteParams,
  query: PageQuery,
  status: 200,
  response: page(PowerOverride),
  read: async ({ params, query, deps }) => {
    await mustFindSite(deps.db, params.id);
    const [after = null] = readCursor(query.cursor, 1) ?? [];
    const rows = await pageOfPowerOverrides(deps.db, params.id, { after, most: query.limit + 1 });
    return pageOf(rows, query.limit, ({ override }) => [override.id], toOverride);
  },
});

const getPowerOverride = readRoute({
  operationId: "getPowerCredentialOverride",
  method: "GET",
  path: `${path}/{override_id}`,
  tag,
  summary: "Read a power override",
  permission: "read",
  right: "read_fleet",
  place: { of: "site", param: "id" },
  params: OverrideParams,
  status: 200,
  response: PowerOverride,
  read: async ({ params, deps }) => {
    const row = await mustFind(deps.db, params);
    return new Versioned(toOverride(row), row.version);
  },
});

/**
 * Gives the row of a BMC login override a new version before the hub writes the login to the secret store. If two requests change one override at the
 * same time, the second request finds a new version of the row, fails, and writes no login. No database transaction waits for the secret store during
 * the change of an override.
 */
async function claim(deps: ApiDependencies, params: OverrideParams, version: string): Promise<void> {
  if (!(await touchPowerOverride(deps.db, params.override_id, version))) throw changedMeanwhile("override");
}

const updatePowerOverride = writeRoute({
  operationId: "updatePowerCredentialOverride",
  method: "PATCH",
  path: `${path}/{override_id}`,
  tag,
  summary: "Rotate a power override's login, or disable or enable the override; later onboardings use the new login",
  permission: "write",
  right: "configure_sites",
  place: { of: "site", param: "id" },
  params: OverrideParams,
  body: PowerOverridePatch,
  status: 200,
  response: PowerOverride,
  before: async ({ params, body, ifMatch, deps }) => {
    const { override, version } = await mustFind(deps.db, params);
    if (mustMatch(ifMatch) !== version) throw changedMeanwhile("override");
    await mustNotBeRemoved(deps.db, override.id);
    if (body.status === "active" && body.user === undefined) await mustHaveLogin(deps, override.vaultPath);
    await claim(deps, params, version);
    const { user, pass, driver } = body;
    if (user !== undefined && pass !== undefined)
      await deps.secrets.write(override.vaultPath, powerLogin({ user, pass, driver }));
  },
  write: async ({ params, body }, tx) => {
    const changed = await changePowerOverride(tx, params.id, params.override_id, { status: body.status });
    if (changed !== null && body.user !== undefined) await forgetCredentialFailures(tx, [changed.vaultPath]);
    const row = await mustFind(tx, params);
    return {
      body: new Versioned(toOverride(row), row.version),
      audit: {
        target: `power-credential-overrides/${params.override_id}`,
        details: { written: Object.keys(body), ...(body.status === undefined ? {} : { status: body.status }) },
      },
    };
  },
});

/**
 * Refuses a change of a BMC login that a full decommission is removing from the secret store. A full decommission first disables the row of the BMC
 * login, which gives the row a new version, so a change that names the row's earlier version fails.
 */
async function mustNotBeRemoved(db: Db, id: string): Promise<void> {
  const remover = await removerOfLogin(db, id);
  if (remover === null) return;
  throw new ApiError(
    "operation_exists",
    `Decommission ${remover} removes the login of this override from the secret store. Wait until it has ended, or recover or cancel it, then write the login.`,
    { context: { decommission_id: remover } },
  );
}

/**
 * The deletion of a BMC login override also removes the login from the secret store. If somebody enabled a BMC login override whose login was
 * removed, the next onboarding of the override's host would fail.
 */
async function mustHaveLogin(deps: ApiDependencies, vaultPath: string): Promise<void> {
  await deps.secrets.read(vaultPath).catch((error: unknown) => {
    if (!(error instanceof SecretError) || error.code !== "secret_missing") throw error;
    throw new ApiError(
      "conflict",
      "The override's login was removed when it was deleted. Send user and pass as well.",
      {
        errors: [{ pointer: "/user", message: "is required to enable the override" }],
      },
    );
  });
}

const deletePowerOverride = writeRoute({
  operationId: "deletePowerCredentialOverride",
  method: "DELETE",
  path: `${path}/{override_id}`,
  tag,
  summary: "Disable an override and remove its login from the secret store; its row stays as history",
  permission: "write",
  right: "configure_sites",
  place: { of: "site", param: "id" },
  params: OverrideParams,
  status: 204,
  response: z.null(),
  // The hub disables an override before it removes the override's BMC login, so that no onboarding uses an override without a login.
  before: async ({ params, deps }) => {
    const { override } = await mustFind(deps.db, params);
    await disablePowerOverride(deps.db, override.id);
    await deps.secrets.remove(override.vaultPath);
  },
  write: async ({ params }) => ({
    body: null,
    audit: { target: `power-credential-overrides/${params.override_id}` },
  }),
});

export const powerOverrideRoutes = [
  createPowerOverride,
  listPowerOverrides,
  getPowerOverride,
  updatePowerOverride,
  deletePowerOverride,
];
