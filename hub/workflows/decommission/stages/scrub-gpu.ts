import { type Evidence, failure } from "../../../../shared/failures.ts";
import {
  GPU_RESET_MEANS,
  GPU_RUNGS,
  GPU_VENDORS,
  type GpuNeed,
  type GpuResetMeans,
  type GpuRung,
  type GpuVendor,
} from "../../../../shared/tasks/gpu-scrub.ts";
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

/** Each text in `NEEDED` tells an operator what the host's GPUs still need and the agent cannot do, such as a reboot of the host. */
const NEEDED: Readonly<Record<Exclude<GpuNeed, "none">, string>> = {
  reboot: "the GPUs need a reboot of the host; reboot it in MAAS, then resume",
  power_cycle: "the GPUs need a power cycle of the host; power it off and on in MAAS, then resume",
};

/** A node without a profile gets the default of `gpu_reset_up_to`. */
const upTo = ({ profile }: DecommissionContext): GpuResetMeans => profile?.gpuResetUpTo ?? "reload";
const rungsUpTo = (limit: GpuResetMeans): GpuRung[] =>
  GPU_RUNGS.filter((rung) => GPU_RESET_MEANS.indexOf(rung) <= GPU_RESET_MEANS.indexOf(limit));

/** An operation gets one power cycle until a person continues it, because a second power cycle would rarely help where the first did not. */
const MOST_POWER_CYCLES = 1;
const mayPowerCycle = (context: DecommissionContext): boolean =>
  upTo(context) === "power_cycle" && (context.state.gpu_power_cycles ?? 0) < MOST_POWER_CYCLES;

const toPowerCycle = (bootId: string, why: string, details: Evidence) =>
  ({
    kind: "done",
    message: `${why}, so the host is power-cycled before another reset`,
    patch: { gpu_power_cycle: { boot_id: bootId, off_since: null }, gpu_power_asked: null },
    details,
  }) as const;

const SCRUB: AgentWork<"node.gpu_scrub"> = {
  type: "node.gpu_scrub",
  undoneBy: null,
  input: (context) => ({
    vendor: vendorOf(context),
    expected_gpus: context.node.gpusTotal,
    rungs: rungsUpTo(upTo(context)),
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
  goOnAfter: (context, task) =>
    task.errorCode === "driver_wedged" && context.session !== null && mayPowerCycle(context)
      ? toPowerCycle(context.session.bootId, "The GPU driver of the host hangs", { task_id: task.id })
      : null,
  decide: (context, { steps, needs, boot_id }, task) => {
    if (needs !== "none" && mayPowerCycle(context))
      return toPowerCycle(boot_id, `The GPUs need a ${needs.replace("_", " ")}`, {
        task_id: task.id,
        gpus_need: needs,
      });
    // Only AMD has a cleaner shader. For a GPU without a cleaner shader, the sanitization record names the shader as not covered.
    const { reasons } = gpuResetVerdict(steps, { gpus: context.node.gpusTotal, cleanerShader: false });
    const isRepeated = (context.state.gpu_power_cycles ?? 0) > 0;
    const needed = needs === "none" ? [] : [`${isRepeated ? "after a power cycle by Muster, " : ""}${NEEDED[needs]}`];
    const all = [...needed, ...reasons];
    if (all.length > 0) return { kind: "failed", failure: notCleaned(context, all, task, { gpus_need: needs }) };
    return {
      kind: "done",
      message: `The GPUs are reset: ${tally(steps)}`,
      details: { task_id: task.id },
      patch: { gpu_power_cycle: null },
    };
  },
});
