import type { HostGpuSizes } from "../../../shared/gpu-sizes.ts";
import type { TaskId } from "../../../shared/ids.ts";
import { TASKS, type TaskResult } from "../../../shared/tasks/index.ts";
import type { Task } from "../../db/schema/index.ts";
import type { Challenged, Filled } from "../../gpu-memory/gpu-evidence.ts";
import { type HostMemory, judgeHostMemory } from "../../gpu-memory/host-memory.ts";
import type { GpuRequirement } from "../../gpu-memory/verdict.ts";
import type { DecommissionContext, GpuMemoryCheck } from "./decommission-context.ts";

/** On a node without a profile, the agent need not overwrite GPU memory. */
export const requiredOf = ({ profile }: Pick<DecommissionContext, "profile">): GpuRequirement => ({
  level: profile?.gpuClaimLevel ?? "reset_only",
  share: (profile?.gpuClaimPercent ?? 0) / 100,
});

export const needsOverwrite = (context: Pick<DecommissionContext, "profile" | "node">): boolean =>
  context.node.gpusTotal > 0 && requiredOf(context).level !== "reset_only";

/**
 * True if the hub accepted the GPU memory as cleared without asking the agent for its contents (the challenge), because the kernel's driver had
 * cleared the memory. If the kernel's driver cleared the GPU memory, no task asks for its contents, and `challenge_task_id` of the check names the
 * task that filled the memory.
 */
export const isAcceptedUnasked = (check: GpuMemoryCheck | null | undefined): boolean =>
  check != null && check.challenge_task_id === check.fill_task_id;

type Ended = Pick<Task, "id" | "state" | "input" | "result">;

/** The result of the task that reset the GPUs; null if the task did not succeed or the hub cannot read its result. */
export function scrubbedOf(task: Ended | null | undefined): TaskResult<"node.gpu_scrub"> | null {
  if (task?.state !== "succeeded") return null;
  return TASKS["node.gpu_scrub"].result.safeParse(task.result).data ?? null;
}

export function filledOf(task: Ended | null | undefined): Filled | null {
  if (task?.state !== "succeeded") return null;
  const input = TASKS["node.gpu_fill"].input.safeParse(task.input);
  const result = TASKS["node.gpu_fill"].result.safeParse(task.result);
  return input.success && result.success ? { taskId: task.id, input: input.data, result: result.data } : null;
}

export function challengedOf(task: Ended | null | undefined): Challenged | null {
  if (task?.state !== "succeeded") return null;
  const input = TASKS["node.gpu_challenge"].input.safeParse(task.input);
  const result = TASKS["node.gpu_challenge"].result.safeParse(task.result);
  return input.success && result.success ? { input: input.data, result: result.data } : null;
}

/**
 * With the result of the GPU reset, the agent reports whether the host's system started with Secure Boot. An older agent does not report Secure Boot,
 * and the firmware of some hosts cannot be read.
 */
function secureBootOf({ steps }: TaskResult<"node.gpu_scrub">): "on" | "off" | "unknown" {
  const told = steps.find(({ step }) => step === "gpu_services_start")?.evidence["secure_boot"];
  return told === "on" || told === "off" ? told : "unknown";
}

/**
 * Concludes from the decommission's newest tasks what Muster may claim about the host's GPU memory. The hub uses the result of a GPU memory check
 * only if `check` names the newest task that filled the memory (`fill`) and the newest task that asked for its contents (`challenge`).
 */
export function hostMemoryOf(
  context: Pick<DecommissionContext, "profile">,
  tasks: { readonly scrub: Task | null; readonly fill: Task | null; readonly challenge: Task | null },
  check: GpuMemoryCheck | null,
  image: string | null,
  sizes: HostGpuSizes,
): HostMemory | null {
  const scrub = scrubbedOf(tasks.scrub);
  if (scrub === null) return null;
  const isOwn = (task: Task | null, id: TaskId | undefined): Task | null => (task?.id === id ? task : null);
  const fill = isOwn(tasks.fill, check?.fill_task_id);
  const challenge = isOwn(tasks.challenge, check?.challenge_task_id);
  const bootId = check?.boot_id ?? scrub.boot_id;
  return judgeHostMemory({
    scrub,
    filled: filledOf(fill),
    challenged: challengedOf(challenge),
    checked: check?.checked ?? [],
    required: requiredOf(context),
    sizes,
    host: {
      at: (challenge ?? fill ?? tasks.scrub)?.finishedAt ?? new Date(0),
      agentVersion: check?.agent_version ?? "of an unknown version",
      bootId,
      image,
      secureBoot: scrub.boot_id === bootId ? secureBootOf(scrub) : "unknown",
    },
  });
}
