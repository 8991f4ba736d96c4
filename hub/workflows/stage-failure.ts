import type { Failure } from "../../shared/failures.ts";

/**
 * An error that carries a stage's failure out of a nested function or out of a `commit`. `classifyError` returns the failure inside a `StageFailure`
 * unchanged.
 */
export class StageFailure extends Error {
  readonly failure: Failure;
  constructor(failure: Failure) {
    super(failure.message);
    this.name = "StageFailure";
    this.failure = failure;
  }
}
