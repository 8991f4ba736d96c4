import type { Failure } from "../../shared/failures.ts";

/** Thrown where a stage finds its failure deep in a helper or in its commit; `classifyError` hands the failure on unchanged. */
export class StageFailure extends Error {
  readonly failure: Failure;
  constructor(failure: Failure) {
    super(failure.message);
    this.name = "StageFailure";
    this.failure = failure;
  }
}
