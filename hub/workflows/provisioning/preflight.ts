import { failure } from "../../../shared/failures.ts";
import { hasBootImage, missingScripts } from "../../maas/boot-images.ts";
import type { MaasPort } from "../../maas/port.ts";
import type { Failed } from "../engine/stage.ts";
import { maasOf, type ProvisionContext } from "./context.ts";
import { deployedSeries } from "./distro-series.ts";
import type { ProvisionState } from "./provision-state.ts";

type Refusal = Failed<ProvisionState>;

interface Fit {
  readonly kind: "fit";
  readonly username: string;
  readonly version: string;
}

/**
 * Finds out what the site lacks for a deploy, before a workflow changes the machine that it deploys (lifecycle 4.14). The preflight calls `whoami`,
 * because MAAS answers `version` without a valid token (decision M1).
 */
export async function preflight(context: ProvisionContext): Promise<Fit | Refusal> {
  const refusal = disabled(context) ?? incomplete(context);
  if (refusal !== null) return refusal;
  const maas = await maasOf(context);
  const { username, isSuperuser } = await maas.whoami();
  if (!isSuperuser) return notAdmin(context, username);
  const { version } = await maas.version();
  const { distroSeries, architecture } = context.profile;
  const series = deployedSeries(distroSeries);
  if (!hasBootImage(await maas.bootResources(), { series, architecture })) return noImage(context, series);
  const missing = await scriptsMissing(context, maas);
  if (missing.length > 0) return noScripts(context, missing);
  return { kind: "fit", username, version };
}

function disabled({ site, profile, sku, operation }: ProvisionContext): Refusal | null {
  const refuse = (code: "site_disabled" | "profile_disabled" | "sku_unknown", what: string): Refusal => ({
    kind: "failed",
    failure: failure("input_config_error", code, `${what} is disabled. Enable it, then start the ${operation} again.`),
  });
  if (site.status !== "active") return refuse("site_disabled", `Site ${site.name}`);
  if (profile.status !== "active") return refuse("profile_disabled", `Profile ${profile.name} of site ${site.name}`);
  if (sku.status !== "active") return refuse("sku_unknown", `SKU ${sku.id}`);
  return null;
}

function incomplete({ site }: ProvisionContext): Refusal | null {
  const missing = [
    site.apiTokenVaultPath === null ? "the MAAS token" : null,
    site.deployPasswordVaultPath === null ? "the deploy password" : null,
  ].filter((what) => what !== null);
  if (missing.length === 0) return null;
  const message = `Site ${site.name} lacks ${missing.join(" and ")}. Write the site's credentials, then resume.`;
  return { kind: "failed", failure: failure("site_capability_missing", "credentials_missing", message) };
}

function notAdmin({ site }: ProvisionContext, username: string): Refusal {
  const message = `The MAAS account ${username} of site ${site.name} is not an administrator. Give the site an administrator's token, then resume.`;
  return { kind: "failed", failure: failure("site_capability_missing", "maas_forbidden", message) };
}

function noImage({ site, profile }: ProvisionContext, series: string): Refusal {
  const message = `MAAS of site ${site.name} has no image ${series} for ${profile.architecture}, which the profile deploys. Import it or change the profile, then resume.`;
  return { kind: "failed", failure: failure("site_capability_missing", "image_missing", message, { image: series }) };
}

/** If the profile names no scripts, as most profiles do, the preflight does not ask MAAS which scripts MAAS has. */
async function scriptsMissing({ profile }: ProvisionContext, maas: MaasPort): Promise<string[]> {
  const wanted = { commissioning: profile.commissioningScripts, testing: profile.testingScripts };
  if (wanted.commissioning.length + wanted.testing.length === 0) return [];
  return missingScripts(
    { commissioning: await maas.scripts("commissioning"), testing: await maas.scripts("testing") },
    wanted,
  );
}

function noScripts({ site }: ProvisionContext, missing: readonly string[]): Refusal {
  const message = `MAAS of site ${site.name} has no script ${missing.join(", ")}, which the profile names. Upload it or change the profile, then resume.`;
  const evidence = { scripts: [...missing] };
  return { kind: "failed", failure: failure("site_capability_missing", "script_missing", message, evidence) };
}
