import type { Evidence } from "./failures.ts";

/** An effect that still exists outside although the workflow is over, so that the end does not claim too much. */
export interface Leftover {
  /** What is left, and in which state. */
  readonly message: string;
  readonly nextAction: string;
  readonly evidence: Evidence;
}
