import type { ExternalAttemptRow } from "../../db/schema/index.ts";
import { ATTEMPT_TABLE } from "./attempt-table.ts";

/**
 * Says why a readiness signal without a generation may be about the operating system that the host had before the provisioning attempt; null if the
 * signal may count. Until the external system reports that the provisioning is completed, the host's former operating system may still run and
 * report. A readiness signal that arrived before the provisioning attempt, and waited until the node existed, is about the host's former operating
 * system, unless the host was adopted as it is.
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
