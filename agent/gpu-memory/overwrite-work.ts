import { defineWork } from "../system/workers/define-work.ts";
import { OverwriteOrder, OverwriteResult } from "./exchange.ts";

/**
 * The kind of work by which a worker process marks or overwrites the memory of one GPU. The limit `memoryMax` applies to the worker process's own
 * memory, without GPU memory.
 */
export const OVERWRITE_WORK = defineWork({
  kind: "gpu.overwrite",
  input: OverwriteOrder,
  result: OverwriteResult,
  memoryMax: "2G",
  mayBlock: true,
});
