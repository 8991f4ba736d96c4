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

export interface Scrub {
  readonly system: System;
  readonly timing: ScrubTiming;
  readonly tools: GpuTools;
  readonly input: TaskInput<"node.gpu_scrub">;
  readonly run: ScrubRun;
  readonly steps: GpuStep[];
  readonly before: readonly GpuState[];
  journal: ScrubJournal;
  /** The Fabric Manager's systemd units, which may keep the GPUs open during a reset. */
  fabricUnits: readonly string[];
  idle: readonly GpuState[];
  after: readonly GpuState[];
  readonly resets: Map<string, ResetResult>;
}

export interface ResetResult {
  readonly group: string;
  readonly rung: "reset" | "reload";
  readonly ok: boolean;
  readonly exitCode: number | null;
  readonly said: string;
}
