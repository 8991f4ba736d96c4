import type { Evidence } from "./failures.ts";

/** An effect of a workflow that still exists outside the database after the workflow has ended. */
export interface Leftover {
  readonly message: string;
  readonly nextAction: string;
  readonly evidence: Evidence;
}
