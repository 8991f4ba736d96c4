/** The verbs with which an operator continues a failed workflow (lifecycle 4.9). */
export const NEXT_VERBS = ["retry", "resume", "rerun", "restart_clean", "adopt"] as const;

/** What an operator reads and does after a workflow has failed. */
export interface Ending {
  /** The workflow's status when no automatic retry is left. */
  readonly endsAs: "failed_retryable" | "failed_manual_intervention";
  /** The operator's verb (lifecycle 4.9) that continues the workflow after the operator has done `nextAction`. */
  readonly nextVerb: (typeof NEXT_VERBS)[number];
  readonly nextAction: string;
}

type Retry = "never" | "bounded" | "until_deadline";

export type Rule = Ending & {
  /**
   * The retry rule `bounded` means that the engine retries the failed stage by the stage's retry policy, and then gives up. The retry rule `never`
   * means that the workflow fails at the first failure. The retry rule `until_deadline` is for an unavailable service, for which a stage waits until
   * the stage's own deadline. While a stage waits for an unavailable service, only requests that the service refused count as attempts of the stage.
   */
  readonly retry: Retry;
  /** Whether the engine undoes the effects of the workflow's stages after a failure of the class (decision W2: only after a failed deploy). */
  readonly compensate: boolean;
  readonly codes: readonly string[];
  /** Failure codes that differ from their class in the retry rule, in the workflow's final status or in the operator's next action. */
  readonly exceptions?: Readonly<Record<string, Partial<Ending> & { readonly retry?: Retry }>>;
};
