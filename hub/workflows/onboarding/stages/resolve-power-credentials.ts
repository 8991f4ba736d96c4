import { failure } from "../../../../shared/failures.ts";
import { recordCredentialUse } from "../../../db/queries/credential-uses.ts";
import { listPowerOverrides } from "../../../db/queries/power-overrides.ts";
import { profileTimeout } from "../../provisioning/context.ts";
import { UPSTREAM_RETRY } from "../../services.ts";
import type { OnboardStage } from "../context.ts";
import { choosePowerCredentials } from "../power-credentials.ts";
import { readPowerLogin } from "../power-login.ts";

/** Chooses the secret with the login of the host's BMC (lifecycle 3.2.1), and proves that the hub can read the secret. */
export const resolvePowerCredentials: OnboardStage<"resolve_power_credentials"> = {
  name: "resolve_power_credentials",
  title: "Choose the BMC login: an override for this host, or the site's default",
  reentry: { rule: "from_top" },
  timeout: profileTimeout(
    "preflightTimeoutSeconds",
    "upstream_transient",
    "secret_store_unavailable",
    "Reading the BMC login",
  ),
  retry: UPSTREAM_RETRY,
  async run({ services, site, onboarding }) {
    const overrides = await listPowerOverrides(services.db, site.id);
    const chosen = choosePowerCredentials(overrides, onboarding, site.defaultPowerCredsVaultPath);
    if (chosen === null) {
      const message = `No BMC login is known for ${onboarding.hostname}: no override matches and site ${site.name} has no default. Write one, then resume.`;
      return { kind: "failed", failure: failure("site_capability_missing", "credentials_missing", message) };
    }
    await readPowerLogin(services.secrets, chosen.path);
    return {
      kind: "done",
      message: chosen.selector === "default" ? "The site's default login" : `The override by ${chosen.selector}`,
      commit: (tx) => recordCredentialUse(tx, { siteId: site.id, path: chosen.path }),
      patch: { power_credentials_path: chosen.path, power_credentials_selector: chosen.selector },
    };
  },
};
