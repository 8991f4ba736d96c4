import type { Evidence } from "./failures.ts";

/** What is still there outside although a workflow is over: no end says more than is true. */
export interface Leftover {
  /** What it is, and in which state. */
  readonly message: string;
  readonly nextAction: string;
  readonly evidence: Evidence;
}
