import type { ExternalAttemptRow } from "../../db/schema/index.ts";
import { ATTEMPT_TABLE } from "./attempt-table.ts";

/**
 * Says why a signal without a generation may be about the system that the host had before the attempt; null if it may count. Until the external system
 * reports the completion, the former system may still run and answer. A signal that arrived before the attempt, and waited for the node, is about the
 * former system too, unless the host was adopted as it is.
 */
export function toldFormer(
  { state, number, generation, adopted, begunAt }: ExternalAttemptRow,
  arrived: Date | null,
): string | null {
  const why =
    ATTEMPT_TABLE[state].complete.kind === "moved"
      ? `attempt ${number} to provision the host is not completed`
      : arrived !== null && arrived < begunAt && !adopted
        ? `it arrived before attempt ${number} to provision the host`
        : null;
  return why === null
    ? null
    : `the signal names no generation and may be about the host's former system, because ${why}; name generation ${generation} if it is about the new system`;
}
