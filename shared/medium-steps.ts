import type { TaskResult, TaskType } from "./tasks/index.ts";

type StepOf<T extends TaskType> =
  TaskResult<T> extends {
    readonly steps: readonly { readonly step: infer S extends string }[];
  }
    ? S
    : never;

/**
 * The kind of medium that a cleaning step works on, by task type and name of the step. The hub orders the cleaning of a medium (for example a disk)
 * only by the steps in the table `MEDIUM_STEPS`, and compares what a host reports about them with the order. For steps that are not in `MEDIUM_STEPS`
 * a host can report anything, so the hub takes nothing about a medium from their evidence.
 */
const MEDIUM_STEPS: {
  readonly [T in TaskType]?: { readonly [S in StepOf<T>]?: "disk" };
} = {
  "node.storage_cleanup": { disk: "disk" },
};

/** Returns the kind of medium that the evidence of a cleaning step may describe, or null if the step cleans no medium. */
export function mediumKindOf(type: string, step: string): "disk" | null {
  const table: Readonly<Record<string, Readonly<Record<string, "disk" | undefined>> | undefined>> = MEDIUM_STEPS;
  const own = Object.hasOwn(table, type) ? table[type] : undefined;
  return own !== undefined && Object.hasOwn(own, step) ? (own[step] ?? null) : null;
}
