import type { MaasEvent } from "../../maas/port.ts";
import type { DeployFailure } from "./provision-state.ts";

const TIMED_OUT = /time-out during deployment|timed out after \d+ minutes/i;

/**
 * MAAS has no event for a datasource failure: the installed system cannot reach MAAS, and so cannot report the failure. A datasource failure looks
 * like an install that reached `Rebooting`, followed by silence until a timeout (decision M11). The argument `events` has the newest event first, as
 * MAAS lists events. MAAS's events from before the last event `Deploying` belong to earlier deploys.
 */
export function classifyDeployFailure(
  failed: Pick<DeployFailure, "reason" | "error_description" | "status_message">,
  events: readonly MaasEvent[],
): "datasource_like" | "generic" {
  const start = events.findIndex((event) => event.type === "Deploying");
  const attempt = start === -1 ? events : events.slice(0, start);
  const seen = (type: string): boolean => attempt.some((event) => event.type === type);
  if (seen("Node installation failure") || seen("Deployed") || !seen("Rebooting")) return "generic";
  const ranOut = failed.reason === "timeout" || TIMED_OUT.test(failed.error_description);
  return ranOut || TIMED_OUT.test(failed.status_message) ? "datasource_like" : "generic";
}
