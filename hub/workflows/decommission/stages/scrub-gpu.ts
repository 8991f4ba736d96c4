import { failure } from "../../../../shared/failures.ts";
import { GPU_VENDORS, type GpuNeed, type GpuVendor } from "../../../../shared/tasks/gpu-scrub.ts";
import { gpuResetVerdict } from "../../../node/gpu-reset-verdict.ts";
import { StageFailure } from "../../stage-failure.ts";
import type { AgentWork } from "../agent-work.ts";
import { cleaningStage } from "../cleaning-stage.ts";
import { notCleaned, tally } from "../cleaning-steps.ts";
import type { DecommissionContext, DecommissionStageOf } from "../decommission-context.ts";

/** The agent has `SCRUB_SECONDS` to free, reset and verify the GPUs, because the reset of one group of GPUs may take five minutes. */
const SCRUB_SECONDS = 3_600;

function vendorOf({ node, gpuVendor }: DecommissionContext): GpuVendor {
  const vendor = GPU_VENDORS.find((one) => one === gpuVendor);
  if (vendor !== undefined) return vendor;
  const message = `SKU ${node.sku} has GPUs, and does not say whose. Set the SKU's gpu_vendor, then rerun.`;
  throw new StageFailure(failure("input_config_error", "sku_unknown", message, { sku_id: node.sku }));
}

/** Each text tells an operator what the GPUs still need and the agent cannot do, such as a reboot of the host. */
const NEEDED: Readonly<Record<Exclude<GpuNeed, "none">, string>> = {
  reboot: "the GPUs need a reboot of the host; reboot it in MAAS, then resume",
  power_cycle: "the GPUs need a power cycle of the host; power it off and on in MAAS, then resume",
};

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
  workSeconds: () => SCRUB_SECONDS,
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
 * Has the agent end the processes that use the GPUs, reset the GPUs, and compare the GPUs' states before and after (lifecycle 5.2). After
 * `scrub_gpu`, Muster claims only that the GPUs were reset, which is the level `reset_only` (decision C2).
 */
export const scrubGpu: DecommissionStageOf<"scrub_gpu"> = cleaningStage({
  name: "scrub_gpu",
  title: "Have the agent reset the GPUs and verify their state",
  work: SCRUB,
  nothingToDo: ({ node }) => (node.gpusTotal === 0 ? "The node's SKU has no GPUs" : null),
  decide: (context, { steps, needs }, task) => {
    // Only AMD has a cleaner shader. For a GPU without a cleaner shader, the sanitization record names the shader as not covered.
    const { reasons } = gpuResetVerdict(steps, { gpus: context.node.gpusTotal, cleanerShader: false });
    const all = [...(needs === "none" ? [] : [NEEDED[needs]]), ...reasons];
    if (all.length > 0) return { kind: "failed", failure: notCleaned(context, all, task, { gpus_need: needs }) };
    return { kind: "done", message: `The GPUs are reset: ${tally(steps)}`, details: { task_id: task.id } };
  },
});
