import { GPU_PERFORMERS } from "./gpu/gpu-scrub-work.ts";
import { OVERWRITE_WORK } from "./gpu-memory/overwrite-work.ts";
import { performOverwrite } from "./system/gpu-memory/perform-overwrite.ts";
import { STORAGE_PERFORMERS } from "./system/storage/performers.ts";
import { type Performer, performer } from "./system/workers/define-work.ts";
import { runWorkerProgram } from "./system/workers/worker-program.ts";

/** The kinds of work that a worker process can perform. The list of work kinds is closed, as is the list of task types. */
const PERFORMERS: readonly Performer[] = [
  ...GPU_PERFORMERS,
  performer(OVERWRITE_WORK, performOverwrite),
  ...STORAGE_PERFORMERS,
];

/** Runs the program of a worker process, and returns the process's exit status. */
export const runWorker = (args: readonly string[]): Promise<number> => runWorkerProgram(args, PERFORMERS);
