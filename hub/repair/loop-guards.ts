import { createHash } from "node:crypto";
import type { HealthIssue, Hold } from "../../shared/repair.ts";

/** The number of days in which a repair attempt counts towards its machine's limit, whichever repair case the attempt belongs to. */
export const ATTEMPT_WINDOW_DAYS = 30;
/** The limit of repair attempts for a node without a site; each site has a limit of its own. */
export const DEFAULT_ATTEMPT_LIMIT = 3;

/** Two texts count as the same evidence of a fault if they differ only in case, spaces and punctuation. */
export const evidenceDigest = (text: string): string =>
  createHash("sha256")
    .update(
      text
        .normalize("NFKC")
        .toLowerCase()
        .replace(/[^\p{L}\p{N}]+/gu, " ")
        .trim(),
    )
    .digest("hex");

/**
 * Returns a hash of what a reported fault says in its summary and details. The category of the fault is left out, because a report that repeats only
 * the category brings no new evidence.
 */
export const evidenceOfIssue = ({ summary, details }: Pick<HealthIssue, "summary" | "details">): string =>
  evidenceDigest(`${summary} ${details ?? ""}`);

export interface LoopFacts {
  /** The number of repair attempts at the machine within ATTEMPT_WINDOW_DAYS. */
  readonly attempts: number;
  readonly limit: number;
  readonly evidence: string;
  /** The digests of all evidence that earlier repair attempts at the machine knew. */
  readonly known: readonly string[];
}

/**
 * Returns what keeps a machine from another repair attempt, so that nobody claims and releases one unhealthy machine for ever (repair 7.3). Before
 * the first repair attempt at a machine all evidence is new.
 */
export function heldByLoop({ attempts, limit, evidence, known }: LoopFacts): Exclude<Hold, "breaker"> | null {
  if (attempts >= limit) return "attempts_spent";
  return attempts > 0 && known.includes(evidence) ? "no_new_evidence" : null;
}
