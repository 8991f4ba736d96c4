import type { Evidence } from "./failures.ts";

/** An effect that still exists outside after the workflow has ended. */
export interface Leftover {
  /** What still exists, and in which state. */
  readonly message: string;
  readonly nextAction: string;
  readonly evidence: Evidence;
}
