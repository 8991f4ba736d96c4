import { failure } from "../../../shared/failures.ts";
import { maasOf, type OnboardContext, type OnboardStage, profileTimeout, UPSTREAM_RETRY } from "../context.ts";
import { deployedSeries } from "../distro-series.ts";
import type { Failed } from "../engine/stage.ts";
import type { OnboardState } from "../onboard-state.ts";

type Refusal = Failed<OnboardState>;

/** The cheap preflight of lifecycle 4.14: everything that can be known to be missing before a machine is touched. */
export const loadSiteConfig: OnboardStage = {
  name: "load_site_config",
  title: "Check the site, its profile, its secrets and its MAAS account",
  reentry: { rule: "from_top" },
  timeout: profileTimeout("preflightTimeoutSeconds", "upstream_transient", "maas_unreachable", "The preflight"),
  retry: UPSTREAM_RETRY,
  async run(context) {
    const refusal = disabled(context) ?? incomplete(context);
    if (refusal !== null) return refusal;
    const maas = await maasOf(context);
    // whoami, because `version` answers anybody (decision M1).
    const { username, isSuperuser } = await maas.whoami();
    if (!isSuperuser) return notAdmin(context, username);
    const { version } = await maas.version();
    const images = await maas.bootResources();
    const series = deployedSeries(context.profile.distroSeries);
    if (!hasImage(images, series)) return noImage(context, series);
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
  const message = `The MAAS account ${username} of site ${site.name} is no administrator. Give the site an administrator's token, then resume.`;
  return { kind: "failed", failure: failure("site_capability_missing", "maas_forbidden", message) };
}

/** MAAS lists uploaded images with and without their namespace, by version. */
const hasImage = (images: readonly { name: string }[], series: string): boolean =>
  images.some(({ name }) => name === series || `custom/${name}` === series);

function noImage({ site }: OnboardContext, series: string): Refusal {
  const message = `MAAS of site ${site.name} has no image ${series}, which the profile deploys. Import it or change the profile, then resume.`;
  return { kind: "failed", failure: failure("site_capability_missing", "image_missing", message, { image: series }) };
}
