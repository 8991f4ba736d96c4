import { GPU_PERFORMERS } from "./gpu/gpu-scrub-work.ts";
import { OVERWRITE_WORK } from "./gpu-memory/overwrite-work.ts";
import { performOverwrite } from "./system/gpu-memory/perform-overwrite.ts";
import { STORAGE_PERFORMERS } from "./system/storage/performers.ts";
import { type Performer, performer } from "./system/workers/define-work.ts";
import { runWorkerProgram } from "./system/workers/worker-program.ts";

/** The kinds of work that a worker process can perform, which are a closed list like the task types. */
const PERFORMERS: readonly Performer[] = [
  ...GPU_PERFORMERS,
  performer(OVERWRITE_WORK, performOverwrite),
  ...STORAGE_PERFORMERS,
];

export const runWorker = (args: readonly string[]): Promise<number> => runWorkerProgram(args, PERFORMERS);
