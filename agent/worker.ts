import { GPU_PERFORMERS } from "./gpu/gpu-scrub-work.ts";
import type { Performer } from "./system/workers/define-work.ts";
import { runWorkerProgram } from "./system/workers/worker-program.ts";

/** The kinds of work that a worker performs. The list is closed, as the catalogue of tasks is. */
const PERFORMERS: readonly Performer[] = [...GPU_PERFORMERS];

/** The program of a worker, which returns its exit status. */
export const runWorker = (args: readonly string[]): Promise<number> => runWorkerProgram(args, PERFORMERS);
