import { z } from "zod";
import { GPU_STEPS } from "../../shared/tasks/gpu-scrub.ts";
import type { TaskHandlers, TaskReply } from "../../shared/tasks/index.ts";
import { GPU_GIVE_BACK_WORK, GPU_SCRUB_WORK } from "../gpu/gpu-scrub-kinds.ts";
import { markWedged } from "../gpu/scrub-journal.ts";
import type { System } from "../system/system.ts";
import type { WorkEnd } from "../system/workers/workers.ts";
import { isCancelledByHub } from "./cancelled.ts";

const DEADLINE_SECONDS = 3_600;
const GIVE_BACK_SECONDS = 900;
const Step = z.enum(GPU_STEPS);

/**
 * The GPU cleaning runs in a worker process outside the agent (decision C6). If the worker process of a GPU cleaning is lost or cancelled, another
 * worker process restarts the stopped services.
 */
export const gpuScrub =
  (system: System): TaskHandlers["node.gpu_scrub"] =>
  async (input, run) => {
    system.workers.begin(run.taskId, input);
    let end: WorkEnd<{ reply: TaskReply<"node.gpu_scrub"> }>;
    try {
      end = await system.workers.perform({
        taskId: run.taskId,
        part: "scrub",
        work: GPU_SCRUB_WORK,
        input: { task_id: run.taskId, order: input },
        deadlineSeconds: DEADLINE_SECONDS,
        signal: run.signal,
        endsWith: isCancelledByHub,
        progress: ({ step }) => {
          const known = Step.safeParse(step);
          if (known.success) run.progress({ step: known.data });
        },
      });
    } catch (error) {
      if (isCancelledByHub(run.signal)) await giveBack(system, run.taskId);
      throw error;
    }
    if (end.ok) return end.result.reply;
    const { code, message } = end;
    if (code === "systemd_missing" || code === "not_started") return { ok: false, error: code, message };
    if (code === "driver_wedged") {
      await markWedged(system, new Error(message));
      return { ok: false, error: "driver_wedged", message };
    }
    const left = await giveBack(system, run.taskId);
    return {
      ok: false,
      error: "work_lost",
      message: `The cleaning ended without a result: ${message} ${left ?? "All that was stopped runs again."}`,
    };
  };

/**
 * Restarts the services and reloads the kernel modules that the GPU cleaning had stopped. Returns a text about the services or kernel modules that
 * the agent could not restart or load, or null.
 */
async function giveBack(system: System, taskId: string): Promise<string | null> {
  const end = await system.workers.perform({
    taskId,
    part: "give-back",
    work: GPU_GIVE_BACK_WORK,
    input: {},
    deadlineSeconds: GIVE_BACK_SECONDS,
    // The restart of the stopped services gets a signal that never aborts, because they must run again even after the hub has cancelled the task.
    signal: new AbortController().signal,
    endsWith: () => false,
    progress: () => undefined,
  });
  if (!end.ok) return `The stopped services did not come back: ${end.message}`;
  return end.result.failures.length === 0
    ? null
    : `These did not come back: ${end.result.failures.slice(0, 3).join("; ")}`;
}
