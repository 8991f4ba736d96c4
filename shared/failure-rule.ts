export const NEXT_VERBS = ["retry", "resume", "rerun", "restart_clean", "adopt"] as const;

export interface Ending {
  /** The status in which the failed workflow ends when no automatic retry is left. */
  readonly endsAs: "failed_retryable" | "failed_manual_intervention";
  /** The operator's next verb for the failed workflow (lifecycle 4.9), after the operator has done what `nextAction` says. */
  readonly nextVerb: (typeof NEXT_VERBS)[number];
  readonly nextAction: string;
}

type Retry = "never" | "bounded" | "until_deadline";

export type Rule = Ending & {
  /**
   * By the retry rule `bounded`, the engine retries a failed stage as often as the stage's retry policy allows. By the retry rule `never`, the
   * workflow fails at the stage's first failure. By the retry rule `until_deadline`, a stage waits for an unavailable service until the stage's
   * deadline. While a stage waits for an unavailable service, only requests that the service refused count as attempts of the stage.
   */
  readonly retry: Retry;
  /** Whether the workflow engine undoes the effects of a workflow's stages after a failure of this failure class (decision W2). */
  readonly compensate: boolean;
  readonly codes: readonly string[];
  /** Some failure codes have another retry rule, final status or next action than their failure class. */
  readonly exceptions?: Readonly<Record<string, Partial<Ending> & { readonly retry?: Retry }>>;
};
