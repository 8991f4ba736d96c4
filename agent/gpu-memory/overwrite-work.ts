import { defineWork } from "../system/workers/define-work.ts";
import { OverwriteOrder, OverwriteResult } from "./exchange.ts";

/** The limit `memoryMax` covers the worker process's own memory, not GPU memory. */
export const OVERWRITE_WORK = defineWork({
  kind: "gpu.overwrite",
  input: OverwriteOrder,
  result: OverwriteResult,
  memoryMax: "2G",
  mayBlock: true,
});
