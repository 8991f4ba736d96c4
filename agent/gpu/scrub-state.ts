import type { GpuStepName } from "../../shared/tasks/gpu-scrub.ts";
import type { TaskInput } from "../../shared/tasks/index.ts";
import type { System } from "../system/system.ts";
import type { GpuState } from "./gpu-state.ts";
import type { GpuStep } from "./gpu-steps.ts";
import type { GpuTools } from "./gpu-tools.ts";
import type { ScrubJournal } from "./scrub-journal.ts";
import type { ScrubTiming } from "./scrub-timing.ts";

export interface ScrubRun {
  readonly taskId: string;
  readonly signal: AbortSignal;
  readonly progress: (progress: { readonly step: GpuStepName }) => void;
}

/** One cleaning of the GPUs of a host, from its first change to its last. */
export interface Scrub {
  readonly system: System;
  readonly timing: ScrubTiming;
  readonly tools: GpuTools;
  readonly input: TaskInput<"node.gpu_scrub">;
  readonly run: ScrubRun;
  readonly steps: GpuStep[];
  readonly before: readonly GpuState[];
  /** What must be given back. The file on disk has the same content. */
  journal: ScrubJournal;
  /** The services that may keep the GPUs during a reset: the Fabric Manager and its parts. */
  fabricUnits: readonly string[];
  /** The states without services and processes, before and after the reset. */
  idle: readonly GpuState[];
  after: readonly GpuState[];
  /** How each GPU was reset, by PCI address. */
  readonly resets: Map<string, ResetResult>;
}

export interface ResetResult {
  readonly group: string;
  readonly rung: "reset" | "reload";
  readonly ok: boolean;
  /** Null if the tool did not end. */
  readonly exitCode: number | null;
  readonly said: string;
}
