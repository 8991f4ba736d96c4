import { defineWork } from "../system/workers/define-work.ts";
import { OverwriteOrder, OverwriteResult } from "./exchange.ts";

/** The work that overwrites the memory of one GPU. The memory limit is for the worker's own memory, because GPU memory does not count. */
export const OVERWRITE_WORK = defineWork({
  kind: "gpu.overwrite",
  input: OverwriteOrder,
  result: OverwriteResult,
  memoryMax: "2G",
  mayBlock: true,
});
