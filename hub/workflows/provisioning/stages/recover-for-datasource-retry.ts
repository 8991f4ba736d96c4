import { failure } from "../../../../shared/failures.ts";
import type { ProvisioningStage } from "../../../../shared/workflow-status.ts";
import type { Failed } from "../../engine/stage.ts";
import { type ProvisionContext, type ProvisionStage, profileTimeout } from "../context.ts";
import type { ProvisionState } from "../provision-state.ts";
import { stepBackToReady } from "../release.ts";

/** Releases the machine to Ready and goes back to `render_cloud_init`, which makes a new token and new user-data (lifecycle 4.3). */
export const recoverForDatasourceRetry: ProvisionStage<"recover_for_datasource_retry"> = {
  name: "recover_for_datasource_retry",
  title: "Release the machine after a datasource failure and deploy it once more",
  reentry: { rule: "from_top" },
  timeout: profileTimeout(
    "configureTimeoutSeconds",
    "bmc_power_failure",
    "power_action_failed",
    "Releasing the machine for another deploy",
  ),
  retry: { maxAttempts: 2, baseSeconds: 5, maxSeconds: 60 },
  overrides: {
    deploy_cloud_init_failure: { retry: "never" },
    // If the recovery before a second deploy fails, a person must act (lifecycle 4.6).
    upstream_transient: { endsAs: "failed_manual_intervention" },
  },
  async run(context) {
    const failed = context.state.deploy_failure;
    if (failed === null || failed === undefined) return { kind: "skipped", message: "The machine is deployed" };
    const refusal = exhausted(context);
    if (refusal !== null) return refusal;
    const step = await stepBackToReady(
      "recover_for_datasource_retry",
      context,
      "datasource failure, deploying once more",
    );
    if (step.kind !== "ready") return step;
    const retries = (context.state.datasource_retries ?? 0) + 1;
    return {
      kind: "back",
      to: "render_cloud_init" satisfies ProvisioningStage,
      message: `The machine is Ready again; deploy retry ${retries} of ${context.profile.maxDeployRetryAttempts}`,
      patch: { datasource_retries: retries, deploy_failure: null, deploy_intent: null, deploy_started: null },
    };
  },
};

function exhausted({ profile, state, host }: ProvisionContext): Failed<ProvisionState> | null {
  const used = state.datasource_retries ?? 0;
  const evidence = {
    retries_used: used,
    retries_allowed: profile.maxDeployRetryAttempts,
    classified_as: "datasource_like",
  };
  if (!profile.enableDeployRetryOnDatasourceFailure) {
    const message = `The installed system of ${host.hostname} did not reach MAAS, and the profile allows no retry. Check the route from the host to MAAS, then rerun.`;
    return { kind: "failed", failure: failure("deploy_cloud_init_failure", "datasource_failure", message, evidence) };
  }
  if (used < profile.maxDeployRetryAttempts) return null;
  const message = `The installed system of ${host.hostname} did not reach MAAS, even after ${used} ${used === 1 ? "retry" : "retries"}. Check the route from the host to MAAS, then rerun.`;
  return {
    kind: "failed",
    failure: failure("deploy_cloud_init_failure", "datasource_retry_exhausted", message, evidence),
  };
}
