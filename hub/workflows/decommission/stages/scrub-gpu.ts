import { failure } from "../../../../shared/failures.ts";
import { GPU_VENDORS, type GpuVendor } from "../../../../shared/tasks/gpu-scrub.ts";
import { StageFailure } from "../../stage-failure.ts";
import type { AgentWork } from "../agent-work.ts";
import { cleaningStage } from "../cleaning-stage.ts";
import { failedSteps, tally } from "../cleaning-steps.ts";
import type { DecommissionContext, DecommissionStageOf } from "../decommission-context.ts";

/** How long the agent has to free, reset and verify the GPUs. The reset of one group of GPUs may take five minutes. */
const SCRUB_SECONDS = 3_600;

function vendorOf({ node, gpuVendor }: DecommissionContext): GpuVendor {
  const vendor = GPU_VENDORS.find((one) => one === gpuVendor);
  if (vendor !== undefined) return vendor;
  const message = `SKU ${node.sku} has GPUs, and does not say whose. Set the SKU's gpu_vendor, then rerun.`;
  throw new StageFailure(failure("input_config_error", "sku_unknown", message, { sku_id: node.sku }));
}

const SCRUB: AgentWork<"node.gpu_scrub"> = {
  type: "node.gpu_scrub",
  undoneBy: null,
  input: (context) => ({
    vendor: vendorOf(context),
    expected_gpus: context.node.gpusTotal,
    rungs: ["reset", "reload"],
    kill_holders: true,
    plan: false,
  }),
  deadlineSeconds: () => SCRUB_SECONDS,
  isAskedFor: () => true,
  failed: (context, task, evidence) =>
    failure(
      "upstream_transient",
      "cleaning_failed",
      `The GPUs of ${context.node.hostname} were not reset: ${task.errorMessage ?? `the task is ${task.state}`}`,
      evidence,
    ),
  waitsFor: () => "The agent to reset the GPUs",
};

/**
 * Ends what holds the GPUs, resets them, and compares their state with the state before (lifecycle 5.2). The claim level is `reset_only` (decision C2).
 */
export const scrubGpu: DecommissionStageOf<"scrub_gpu"> = cleaningStage({
  name: "scrub_gpu",
  title: "Have the agent reset the GPUs and verify their state",
  work: SCRUB,
  nothingToDo: ({ node }) => (node.gpusTotal === 0 ? "The node's SKU has no GPUs" : null),
  decide: (context, { steps, needs }, task) => {
    const failed = failedSteps(context, steps, task);
    if (failed !== null) return { kind: "failed", failure: failed };
    const { node } = context;
    if (needs === "none")
      return { kind: "done", message: `The GPUs are reset: ${tally(steps)}`, details: { task_id: task.id } };
    const what = needs === "reboot" ? "reboot" : "power cycle";
    const message = `The GPUs of ${node.hostname} need a ${what} before they are clean. Do it in MAAS, then resume.`;
    const evidence = { node_id: node.id, task_id: task.id, gpus_need: needs };
    return { kind: "failed", failure: failure("upstream_transient", "cleaning_failed", message, evidence) };
  },
});
