import { ApiError } from "../../../shared/api/errors.ts";
import { page } from "../../../shared/api/onboardings.ts";
import { CredentialWarning, Site, SiteCredentials, SiteProbe } from "../../../shared/api/sites.ts";
import type { SiteId } from "../../../shared/ids.ts";
import { Secret } from "../../../shared/secret.ts";
import { forgetCredentialFailures, listCredentials } from "../../db/queries/credential-uses.ts";
import { listActiveProfiles } from "../../db/queries/maas-site-profiles.ts";
import { type SecretPaths, setSecretPaths } from "../../db/queries/maas-sites.ts";
import type { MaasSite } from "../../db/schema/index.ts";
import { SECRET_PATHS } from "../../secrets/port.ts";
import { powerLogin } from "../../secrets/power-login.ts";
import { warningOf } from "../../workflows/onboarding/credential-warnings.ts";
import type { ApiDependencies } from "../deps.ts";
import { readRoute, writeRoute } from "../route.ts";
import { mustFindSite, SITES_PATH, SITES_TAG, SiteParams, toSite } from "./maas-sites.ts";
import { removeDisownedToken } from "./site-address.ts";
import { mustBeSoleInRegion, othersAdvice, othersOfRegion } from "./sole-region.ts";

const writeMaasSiteCredentials = writeRoute({
  operationId: "writeMaasSiteCredentials",
  method: "POST",
  path: `${SITES_PATH}/{id}/credentials`,
  tag: SITES_TAG,
  summary: "Write secrets to the secret store; a MAAS token is first tested at the site's api_base_url",
  permission: "write",
  right: "configure_sites",
  place: { of: "site", param: "id" },
  params: SiteParams,
  body: SiteCredentials,
  status: 200,
  response: Site,
  before: async ({ params, body, deps }) => {
    const site = await mustFindSite(deps.db, params.id);
    if (body.maas_token !== undefined) {
      const token = new Secret(body.maas_token);
      await mustBeUsable(deps, site, token);
      // A site with a MAAS token may replace its token even if another site has the same MAAS region. Without a valid MAAS token the site's workflows
      // would stop.
      if (site.apiTokenVaultPath === null) await mustBeSoleInRegion(deps, site, token);
    }
    return { triedAt: site.apiBaseUrl, paths: await storeCredentials(deps, site.id, body) };
  },
  abandon: async ({ params, body, deps }) => {
    if (body.maas_token !== undefined) await removeDisownedToken(deps, params.id);
  },
  write: async ({ params, body }, tx, { triedAt, paths }) => {
    const site = await setSecretPaths(tx, params.id, paths, body.maas_token === undefined ? null : triedAt);
    if (site === null)
      throw new ApiError(
        "conflict",
        `The token was tried at ${triedAt}, and the site's api_base_url has changed since then. Write the credentials again, with a token of the new address.`,
      );
    await forgetCredentialFailures(tx, Object.values(paths));
    return {
      body: toSite(site),
      audit: { target: `maas-sites/${params.id}`, details: { written: Object.keys(body) } },
    };
  },
});

/**
 * The checks of a site that must pass before the hub stores a MAAS token. Checks that do not concern the MAAS token, such as the check of connected
 * racks, may fail when the hub stores a token (lifecycle 3.4).
 */
const OF_THE_TOKEN: readonly SiteProbe["checks"][number]["name"][] = ["reachable", "clock", "token", "rights"];

export async function mustBeUsable(deps: ApiDependencies, site: MaasSite, token: Secret): Promise<void> {
  const failed = failedOf(await deps.probe({ site, token, profiles: [] })).filter(({ name }) =>
    OF_THE_TOKEN.includes(name),
  );
  if (failed.length > 0)
    throw new ApiError("site_unusable", `Nothing was written: ${failed.map(({ message }) => message).join(" ")}`, {
      errors: [{ pointer: "/maas_token", message: failed[0]?.message ?? "was refused" }],
    });
}

const failedOf = (probe: SiteProbe): SiteProbe["checks"] => probe.checks.filter(({ status }) => status === "failed");

/** Writes the credentials to the secret store before the database gets their paths, so that a path in the database never names a missing secret. */
async function storeCredentials(deps: ApiDependencies, siteId: SiteId, body: SiteCredentials): Promise<SecretPaths> {
  const paths: SecretPaths = {};
  if (body.maas_token !== undefined) {
    await deps.secrets.write(SECRET_PATHS.maasToken(siteId), { token: body.maas_token });
    paths.apiTokenVaultPath = SECRET_PATHS.maasToken(siteId);
  }
  if (body.power !== undefined) {
    await deps.secrets.write(SECRET_PATHS.defaultPower(siteId), powerLogin(body.power));
    paths.defaultPowerCredsVaultPath = SECRET_PATHS.defaultPower(siteId);
  }
  if (body.deploy_password !== undefined) {
    await deps.secrets.write(SECRET_PATHS.deployPassword(siteId), { password: body.deploy_password });
    paths.deployPasswordVaultPath = SECRET_PATHS.deployPassword(siteId);
  }
  return paths;
}

/**
 * Without a deploy password every onboarding fails before its first call to MAAS. Without a BMC login every onboarding of a host without an override
 * fails (lifecycle 3.2.1, 4.14).
 */
function credentialsCheck(site: MaasSite): SiteProbe["checks"][number] {
  const missing = [
    ...(site.deployPasswordVaultPath === null ? ["deploy_password, which every onboarding needs"] : []),
    ...(site.defaultPowerCredsVaultPath === null
      ? ["power, which hosts without a power-credential override need"]
      : []),
  ];
  const about = { name: "credentials", profile: null } as const;
  return missing.length === 0
    ? { ...about, status: "ok", message: "The site has a deploy password and a BMC login." }
    : { ...about, status: "warning", message: `The site has no ${missing.join("; no ")}. Write its credentials.` };
}

/**
 * Finds the other sites whose MAAS region is the given site's region. Two sites of one MAAS region may exist because an older hub did not refuse the
 * second site, or because Muster could not compare the regions of the two sites when the second one was created.
 */
async function soleCheck(
  deps: ApiDependencies,
  { site, token }: { readonly site: MaasSite; readonly token: Secret },
): Promise<SiteProbe["checks"][number]> {
  const names = (await othersOfRegion(deps, site, token)).map(({ name }) => name);
  const about = { name: "sole_site", profile: null } as const;
  return names.length === 0
    ? { ...about, status: "ok", message: "No other site is known to be of this region." }
    : { ...about, status: "failed", message: othersAdvice(names) };
}

const probeMaasSite = readRoute({
  operationId: "probeMaasSite",
  method: "POST",
  path: `${SITES_PATH}/{id}/probe`,
  tag: SITES_TAG,
  summary:
    "Check whether the site's MAAS is usable (422 with reasons if not), and report problems of its active profiles",
  permission: "read",
  right: "read_fleet",
  place: { of: "site", param: "id" },
  params: SiteParams,
  status: 200,
  response: SiteProbe,
  read: async ({ params, deps }) => {
    const site = await mustFindSite(deps.db, params.id);
    if (site.apiTokenVaultPath === null)
      throw new ApiError("site_unusable", "The site has no MAAS token. Write its credentials first.");
    const profiles = await listActiveProfiles(deps.db, site.id);
    const { token = "" } = await deps.secrets.read(site.apiTokenVaultPath);
    const about = { site, token: new Secret(token), profiles };
    const asked = await deps.probe(about);
    const sole = failedOf(asked).length === 0 ? [await soleCheck(deps, about)] : [];
    const probe = { ...asked, checks: [...asked.checks, ...sole, credentialsCheck(site)] };
    const failed = failedOf(probe);
    if (failed.length === 0) return probe;
    throw new ApiError("site_unusable", failed.map(({ message }) => message).join(" "), {
      context: Object.fromEntries(failed.map(({ name, message }) => [name, message])),
    });
  },
});

const listCredentialWarnings = readRoute({
  operationId: "listMaasSiteCredentialWarnings",
  method: "GET",
  path: `${SITES_PATH}/{id}/credential-warnings`,
  tag: SITES_TAG,
  summary: "List the site's secrets that do not work, and BMC logins of single hosts that nothing has used for 30 days",
  permission: "read",
  right: "read_fleet",
  place: { of: "site", param: "id" },
  params: SiteParams,
  status: 200,
  response: page(CredentialWarning),
  read: async ({ params, deps }) => {
    await mustFindSite(deps.db, params.id);
    const secrets = await listCredentials(deps.db, params.id);
    const items = secrets.flatMap((secret) => {
      const warning = warningOf(secret);
      if (warning === null) return [];
      const { kind: credential, overrideId: override_id } = secret;
      return [{ credential, override_id, ...warning, since: warning.since.toISOString() }];
    });
    return { items, next_cursor: null };
  },
});

export const siteCredentialRoutes = [writeMaasSiteCredentials, probeMaasSite, listCredentialWarnings];
