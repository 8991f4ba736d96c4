import { failure } from "../../../../shared/failures.ts";
import { MaasError, type MaasEvent } from "../../../maas/port.ts";
import { isAway, isFinal } from "../../classify-error.ts";
import type { Failed, Wait } from "../../engine/stage.ts";
import { UPSTREAM_RETRY } from "../../services.ts";
import { maasOf, type ProvisionContext, type ProvisionStage, profileTimeout, systemIdOf } from "../context.ts";
import { classifyDeployFailure as classify } from "../deploy-failure.ts";
import type { DeployFailure, ProvisionState } from "../provision-state.ts";

const EVENTS = 100;
const UNREAD_PAUSE_SECONDS = 5;

/**
 * If the hub cannot read the events of a failed deploy, the deploy counts as a generic failure, without automatic retries (lifecycle 4.6). The hub
 * asks MAAS for the events of the failed deploy up to three times.
 */
export const classifyDeployFailure: ProvisionStage<"classify_deploy_failure"> = {
  name: "classify_deploy_failure",
  title: "Tell a datasource failure from any other failed deploy",
  reentry: { rule: "from_top" },
  timeout: profileTimeout(
    "configureTimeoutSeconds",
    "deploy_cloud_init_failure",
    "deploy_failed",
    "Classifying the failed deploy",
  ),
  retry: UPSTREAM_RETRY,
  // The engine does not retry a classified deploy failure, because a second classification would read the same events.
  overrides: { deploy_cloud_init_failure: { retry: "never" } },
  async run(context) {
    const failed = context.state.deploy_failure;
    if (failed === null || failed === undefined) return { kind: "skipped", message: "The machine is deployed" };
    const events = await recentEvents(context);
    if (events !== null && "kind" in events) return events;
    const kind = classify(failed, events ?? []);
    if (kind === "generic") return generic(context, failed, events);
    return {
      kind: "done",
      message: "The installed system did not reach its datasource",
      patch: { deploy_failure: { ...failed, classified_as: kind }, events_unread: null },
    };
  },
};

async function recentEvents(context: ProvisionContext): Promise<readonly MaasEvent[] | Wait<ProvisionState> | null> {
  const maas = await maasOf(context);
  try {
    return await maas.machineEvents(systemIdOf(context), { limit: EVENTS, level: "INFO" });
  } catch (error) {
    if (!(error instanceof MaasError)) throw error;
    if (isFinal(error)) return null;
    // If MAAS is unavailable, the request `whoami` fails like the request for events, and the engine waits. If `whoami` succeeds, MAAS is available
    // and only fails to return the events of the deploy.
    if (isAway(error)) await maas.whoami();
    const unread = (context.state.events_unread ?? 0) + 1;
    if (unread >= UPSTREAM_RETRY.maxAttempts) return null;
    const reason = "MAAS to return the events of the failed deploy";
    return { kind: "wait", reason, seconds: UNREAD_PAUSE_SECONDS, patch: { events_unread: unread } };
  }
}

function generic(
  { host, state }: ProvisionContext,
  failed: DeployFailure,
  events: readonly MaasEvent[] | null,
): Failed<ProvisionState> {
  const why = failed.error_description || failed.status_message || "MAAS gave no reason";
  const code = failed.reason === "timeout" ? "deploy_timeout" : "deploy_failed";
  const message = `The deploy of ${host.hostname} failed: ${why}. Read MAAS's installation log of the machine, then rerun.`;
  const evidence = {
    maas_system_id: state.maas_system_id ?? null,
    last_maas_status_code: failed.maas_status,
    error_description: failed.error_description,
    classified_as: "generic",
    events: events?.slice(0, 10).map((event) => `${event.type}: ${event.description}`.slice(0, 200)) ?? [
      "not readable",
    ],
  };
  return { kind: "failed", failure: failure("deploy_cloud_init_failure", code, message, evidence) };
}
