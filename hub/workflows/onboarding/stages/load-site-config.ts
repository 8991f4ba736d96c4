import { failure } from "../../../../shared/failures.ts";
import { hasBootImage, missingScripts } from "../../../maas/boot-images.ts";
import type { MaasPort } from "../../../maas/port.ts";
import type { Failed } from "../../engine/stage.ts";
import { maasOf, profileTimeout } from "../../provisioning/context.ts";
import { deployedSeries } from "../../provisioning/distro-series.ts";
import { UPSTREAM_RETRY } from "../../services.ts";
import type { OnboardContext, OnboardStage } from "../context.ts";
import type { OnboardState } from "../onboard-state.ts";

type Refusal = Failed<OnboardState>;

/** The preflight of lifecycle 4.14: finds out what the site lacks, before the onboarding changes a machine. */
export const loadSiteConfig: OnboardStage<"load_site_config"> = {
  name: "load_site_config",
  title: "Check the site, its profile, its secrets and its MAAS account",
  reentry: { rule: "from_top" },
  timeout: profileTimeout("preflightTimeoutSeconds", "upstream_transient", "maas_unreachable", "The preflight"),
  retry: UPSTREAM_RETRY,
  async run(context) {
    const refusal = disabled(context) ?? incomplete(context);
    if (refusal !== null) return refusal;
    const maas = await maasOf(context);
    // The stage calls `whoami`, because MAAS answers `version` without a valid token (decision M1).
    const { username, isSuperuser } = await maas.whoami();
    if (!isSuperuser) return notAdmin(context, username);
    const { version } = await maas.version();
    const { distroSeries, architecture } = context.profile;
    const series = deployedSeries(distroSeries);
    if (!hasBootImage(await maas.bootResources(), { series, architecture })) return noImage(context, series);
    const missing = await scriptsMissing(context, maas);
    if (missing.length > 0) return noScripts(context, missing);
    return {
      kind: "done",
      message: `MAAS ${version} answers as administrator ${username}`,
      patch: { maas_username: username, maas_version: version },
    };
  },
};

function disabled({ site, profile, sku }: OnboardContext): Refusal | null {
  const refuse = (code: "site_disabled" | "profile_disabled" | "sku_unknown", what: string): Refusal => ({
    kind: "failed",
    failure: failure("input_config_error", code, `${what} is disabled. Enable it, then start the onboarding again.`),
  });
  if (site.status !== "active") return refuse("site_disabled", `Site ${site.name}`);
  if (profile.status !== "active") return refuse("profile_disabled", `Profile ${profile.name} of site ${site.name}`);
  if (sku.status !== "active") return refuse("sku_unknown", `SKU ${sku.id}`);
  return null;
}

function incomplete({ site }: OnboardContext): Refusal | null {
  const missing = [
    site.apiTokenVaultPath === null ? "the MAAS token" : null,
    site.deployPasswordVaultPath === null ? "the deploy password" : null,
  ].filter((what) => what !== null);
  if (missing.length === 0) return null;
  const message = `Site ${site.name} lacks ${missing.join(" and ")}. Write the site's credentials, then resume.`;
  return { kind: "failed", failure: failure("site_capability_missing", "credentials_missing", message) };
}

function notAdmin({ site }: OnboardContext, username: string): Refusal {
  const message = `The MAAS account ${username} of site ${site.name} is not an administrator. Give the site an administrator's token, then resume.`;
  return { kind: "failed", failure: failure("site_capability_missing", "maas_forbidden", message) };
}

function noImage({ site, profile }: OnboardContext, series: string): Refusal {
  const message = `MAAS of site ${site.name} has no image ${series} for ${profile.architecture}, which the profile deploys. Import it or change the profile, then resume.`;
  return { kind: "failed", failure: failure("site_capability_missing", "image_missing", message, { image: series }) };
}

/** If the profile names no scripts, as most profiles do, the stage does not ask MAAS for its scripts. */
async function scriptsMissing({ profile }: OnboardContext, maas: MaasPort): Promise<string[]> {
  const wanted = { commissioning: profile.commissioningScripts, testing: profile.testingScripts };
  if (wanted.commissioning.length + wanted.testing.length === 0) return [];
  return missingScripts(
    { commissioning: await maas.scripts("commissioning"), testing: await maas.scripts("testing") },
    wanted,
  );
}

function noScripts({ site }: OnboardContext, missing: readonly string[]): Refusal {
  const message = `MAAS of site ${site.name} has no script ${missing.join(", ")}, which the profile names. Upload it or change the profile, then resume.`;
  const evidence = { scripts: [...missing] };
  return { kind: "failed", failure: failure("site_capability_missing", "script_missing", message, evidence) };
}
