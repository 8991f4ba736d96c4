import { createLog } from "../log.ts";
import { systemAt } from "../system/system.ts";
import { type Performer, performer } from "../system/workers/define-work.ts";
import { giveBackLeftovers } from "./gpu-give-back.ts";
import { GPU_GIVE_BACK_WORK, GPU_SCRUB_WORK } from "./gpu-scrub-kinds.ts";
import { scrubGpus } from "./scrub.ts";

export const GPU_PERFORMERS: readonly Performer[] = [
  performer(GPU_SCRUB_WORK, async ({ task_id, order }, run) => {
    const progress = ({ step }: { readonly step: string }): void => run.progress({ step, done: 0, bytes: 0 });
    return {
      reply: await scrubGpus(systemAt(run.root, createLog()), order, { taskId: task_id, signal: run.signal, progress }),
    };
  }),
  performer(GPU_GIVE_BACK_WORK, async (_input, run) => {
    const given = await giveBackLeftovers(systemAt(run.root, createLog()));
    return { failures: [...(given?.failures ?? [])] };
  }),
];
