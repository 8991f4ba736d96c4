import { createHash } from "node:crypto";
import type { HealthIssue, Hold } from "../../shared/repair.ts";

/** The attempts of this time count towards the limit of a machine, whichever case they belong to. */
export const ATTEMPT_WINDOW_DAYS = 30;
/** The limit of attempts for a node without a site; a site has its own. */
export const DEFAULT_ATTEMPT_LIMIT = 3;

/** Two texts are one piece of evidence if they differ only in case, spaces and punctuation. */
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

/** The evidence that an issue is; the category alone says nothing new. */
export const evidenceOfIssue = ({ summary, details }: Pick<HealthIssue, "summary" | "details">): string =>
  evidenceDigest(`${summary} ${details ?? ""}`);

export interface LoopFacts {
  /** The attempts at the machine within ATTEMPT_WINDOW_DAYS. */
  readonly attempts: number;
  readonly limit: number;
  readonly evidence: string;
  /** The digests of all evidence that earlier attempts at the machine knew. */
  readonly known: readonly string[];
}

/**
 * Says what keeps a machine from another attempt, so that nobody claims and releases one unhealthy machine for ever (repair 7.3). Before the first
 * attempt at a machine all evidence is new.
 */
export function heldByLoop({ attempts, limit, evidence, known }: LoopFacts): Exclude<Hold, "breaker"> | null {
  if (attempts >= limit) return "attempts_spent";
  return attempts > 0 && known.includes(evidence) ? "no_new_evidence" : null;
}
