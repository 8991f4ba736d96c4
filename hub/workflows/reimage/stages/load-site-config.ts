import { profileTimeout } from "../../provisioning/context.ts";
import { preflight } from "../../provisioning/preflight.ts";
import { UPSTREAM_RETRY } from "../../services.ts";
import type { ReimageStage } from "../context.ts";

/**
 * Runs the preflight before the reimage releases the machine (lifecycle 4.14). If the preflight finds that the site cannot deploy a machine now, the
 * host must keep its installed system.
 */
export const loadSiteConfig: ReimageStage<"load_site_config"> = {
  name: "load_site_config",
  title: "Check the site, its profile, its secrets and its MAAS account",
  reentry: { rule: "from_top" },
  timeout: profileTimeout("preflightTimeoutSeconds", "upstream_transient", "maas_unreachable", "The preflight"),
  retry: UPSTREAM_RETRY,
  async run(context) {
    const found = await preflight(context);
    if (found.kind === "failed") return found;
    return {
      kind: "done",
      message: `MAAS ${found.version} answers as administrator ${found.username}`,
      patch: { maas_username: found.username, maas_system_id: context.decommission.maasSystemId },
    };
  },
};
