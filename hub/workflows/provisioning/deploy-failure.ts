import type { MaasEvent } from "../../maas/port.ts";
import type { DeployFailure } from "./provision-state.ts";

/** Texts that MAAS's own time-outs of a deploy contain, in its two wordings (maas 5.4). */
const TIMED_OUT = /time-out during deployment|timed out after \d+ minutes/i;

/**
 * Datasource failures have no event that names them: the installed OS cannot reach MAAS, so it cannot report the failure either. Their pattern is an
 * install that reached `Rebooting`, followed by silence until a time-out (decision M11). `events` are newest first,
 * as MAAS gives them; events before the last `Deploying` belong to earlier attempts.
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
