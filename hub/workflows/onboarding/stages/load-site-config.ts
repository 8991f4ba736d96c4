import { profileTimeout } from "../../provisioning/context.ts";
import { preflight } from "../../provisioning/preflight.ts";
import { UPSTREAM_RETRY } from "../../services.ts";
import type { OnboardStage } from "../context.ts";

/** Runs the preflight, which checks the site before the onboarding changes a machine (lifecycle 4.14). */
export const loadSiteConfig: OnboardStage<"load_site_config"> = {
  name: "load_site_config",
  title: "Check the site, its profile, its secrets and its MAAS account",
  reentry: { rule: "from_top" },
  timeout: profileTimeout("preflightTimeoutSeconds", "upstream_transient", "maas_unreachable", "The preflight"),
  retry: UPSTREAM_RETRY,
  async run(context) {
    const found = await preflight(context);
    if (found.kind === "failed") return found;
    const { username, version } = found;
    return {
      kind: "done",
      message: `MAAS ${version} answers as administrator ${username}`,
      patch: { maas_username: username, maas_version: version },
    };
  },
};
