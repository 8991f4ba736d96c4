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

/** The state of one cleaning of a host's GPUs, from the cleaning's first change to its last. */
export interface Scrub {
  readonly system: System;
  readonly timing: ScrubTiming;
  readonly tools: GpuTools;
  readonly input: TaskInput<"node.gpu_scrub">;
  readonly run: ScrubRun;
  readonly steps: GpuStep[];
  readonly before: readonly GpuState[];
  /**
   * The services, kernel modules and persistence modes that the cleaning must restore. The journal file on disk has the same content as `journal`.
   */
  journal: ScrubJournal;
  /** The systemd units that may keep the GPUs open during a reset: the Fabric Manager and its parts. */
  fabricUnits: readonly string[];
  /**
   * The states of the GPUs while no service and no process uses the GPUs. The agent reads `idle` before it resets the GPUs, and `after` when the GPUs
   * have been reset.
   */
  idle: readonly GpuState[];
  after: readonly GpuState[];
  /** How the agent reset each GPU, by the GPU's PCI address. */
  readonly resets: Map<string, ResetResult>;
}

export interface ResetResult {
  readonly group: string;
  readonly rung: "reset" | "reload";
  readonly ok: boolean;
  /** `exitCode` is null if the vendor's tool did not end. */
  readonly exitCode: number | null;
  readonly said: string;
}
