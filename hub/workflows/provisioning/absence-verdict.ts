import { type Evidence, type Failure, failure } from "../../../shared/failures.ts";
import type { AttemptKind, ConnectionAttempt, NodeConditionRow } from "../../db/schema/index.ts";

/** The facts about an agent that did not connect in time, from the hub's listener, the agent's last session, and MAAS. */
export interface Absence {
  readonly hostname: string;
  readonly addresses: readonly string[];
  readonly connected: boolean;
  readonly health: Pick<NodeConditionRow, "status" | "reason" | "message"> | null;
  readonly enrolledAt: Date | null;
  /** Connection attempts from the host's addresses or with the host's enrollment token, newest first. */
  readonly attempts: readonly Pick<ConnectionAttempt, "address" | "kind" | "detail" | "count" | "lastAt">[];
  /** The host's own report to MAAS that the first boot failed; null if MAAS has no such report. */
  readonly maasSaw: string | null;
}

type Cause =
  | "clock_wrong"
  | "unhealthy"
  | "connected"
  | "enrolled"
  | "token_expired"
  | "refused"
  | "untrusted"
  | "not_valid_now"
  | "broken_off"
  | "answered"
  | "silent";

const MOST_LINES = 8;
/**
 * If connection attempts have the same time, the kind that comes first in `SAYS_MORE` decides the cause of the agent's absence. `SAYS_MORE` lists a
 * refused enrollment token before a request that the hub answered, because the refusal says more about the cause of the agent's absence.
 */
const SAYS_MORE = [
  "enrollment_refused",
  "certificate_untrusted",
  "certificate_not_valid_now",
  "asked",
  "handshake_failed",
];
const CAUSE_OF = {
  certificate_untrusted: "untrusted",
  certificate_not_valid_now: "not_valid_now",
  asked: "answered",
  handshake_failed: "broken_off",
} as const;

/** Only the host's newest attempt to connect decides the cause of the agent's absence, because somebody may have corrected earlier faults. */
function causeOf({ connected, health, enrolledAt, attempts }: Absence): Cause {
  if (connected) {
    if (health?.status !== "False") return "connected";
    return health.reason === "ClockSkewed" ? "clock_wrong" : "unhealthy";
  }
  if (enrolledAt !== null) return "enrolled";
  const [newest] = attempts.toSorted(
    (a, b) => b.lastAt.getTime() - a.lastAt.getTime() || SAYS_MORE.indexOf(a.kind) - SAYS_MORE.indexOf(b.kind),
  );
  if (newest === undefined) return "silent";
  if (newest.kind !== "enrollment_refused") return CAUSE_OF[newest.kind];
  return newest.detail === "token_expired" ? "token_expired" : "refused";
}

const SAYS: Readonly<Record<AttemptKind, (address: string, times: string, detail: string) => string>> = {
  asked: (address, times, detail) => `${address} was answered ${times} (status ${detail})`,
  enrollment_refused: (address, times, detail) => `the hub refused the token of ${address} ${times} (${detail})`,
  certificate_untrusted: (address, times) => `${address} refused the hub's certificate (unknown CA) ${times}`,
  certificate_not_valid_now: (address, times) =>
    `${address} refused the hub's certificate, which is not valid at the time of the host's clock, ${times}`,
  handshake_failed: (address, times, detail) => `${address} ended the TLS handshake ${times} (${detail})`,
};

/** Returns one line for each connection attempt of the host that the hub's listener recorded. */
const linesOf = ({ attempts }: Pick<Absence, "attempts">): string[] =>
  attempts
    .slice(0, MOST_LINES)
    .map(({ address, kind, detail, count, lastAt }) =>
      SAYS[kind](address, `${count === 1 ? "once" : `${count} times`}, last at ${lastAt.toISOString()}`, detail),
    );

/**
 * Returns the cause of the agent's absence for the workflow's wait reason, or null if a person cannot act on the cause yet. The text about the cause
 * of the agent's absence does not change while the cause lasts, because each new wait reason causes an event.
 */
export function hintOf(absence: Absence): string | null {
  const hints: Partial<Record<Cause, string>> = {
    clock_wrong: `the host's clock is wrong: ${absence.health?.message}`,
    untrusted: "the host does not trust the hub's certificate (unknown CA)",
    not_valid_now: "the hub's certificate is not valid at the time of the host's clock",
    refused: "the hub refuses the host's enrollment token",
  };
  return hints[causeOf(absence)] ?? null;
}

/** The argument `otherwise` builds the failure if the cause of the agent's absence has no error code of its own. */
export function absenceFailure(
  absence: Absence,
  stage: { readonly evidence: Evidence; otherwise(message: string, evidence: Evidence): Failure },
): Failure {
  const { hostname, health, enrolledAt, maasSaw } = absence;
  const lines = linesOf(absence);
  const seen = lines.join("; ");
  const boot = maasSaw === null ? "" : ` MAAS was told that its first boot failed: ${maasSaw}.`;
  const evidence: Evidence = {
    ...stage.evidence,
    seen_from_host: lines,
    enrolled_at: enrolledAt?.toISOString() ?? null,
    ...(health?.status === "False" ? { agent_unhealthy: `${health.reason}: ${health.message}` } : {}),
    ...(maasSaw === null ? {} : { maas_saw: maasSaw }),
  };
  const enrollment = (code: Parameters<typeof failure<"agent_enrollment_failure">>[1], message: string) =>
    failure("agent_enrollment_failure", code, `${message}${boot}`, evidence);
  const cause = causeOf(absence);
  switch (cause) {
    case "clock_wrong":
      return enrollment(
        "host_clock_wrong",
        `The clock of ${hostname} is wrong: ${health?.message}. Set the clock on the host, then resume.`,
      );
    case "not_valid_now":
      return enrollment(
        "host_clock_wrong",
        `The clock of ${hostname} seems to be wrong by more than a day: ${seen}. Set the clock on the host, then resume.`,
      );
    case "unhealthy":
      return enrollment(
        "agent_unhealthy",
        `The agent of ${hostname} is connected but not healthy: ${health?.message}. Remove the cause on the host, then resume.`,
      );
    case "untrusted":
      return enrollment(
        "agent_distrusts_hub",
        `The host ${hostname} does not trust this hub: ${seen}. The host's user-data contains the CA of another hub. Put this hub's CA on the host and resume, or restart clean.`,
      );
    case "token_expired":
    case "refused":
      return enrollment(
        cause === "refused" ? "enrollment_refused" : "token_expired",
        `The hub refused the enrollment of ${hostname}: ${seen}. Check that this host, and no other host, runs the user-data of this provisioning. Then resume, or restart clean.`,
      );
    default:
      return stage.otherwise(`${UNEXPLAINED[cause](absence, seen)}${boot}`, evidence);
  }
}

type Unexplained = "connected" | "enrolled" | "broken_off" | "answered" | "silent";
const UNEXPLAINED: Readonly<Record<Unexplained, (absence: Absence, seen: string) => string>> = {
  connected: ({ hostname }) =>
    `The agent of ${hostname} is connected but has not reported that it is healthy. Read the agent's log on the host.`,
  enrolled: ({ hostname, enrolledAt }) =>
    `The agent of ${hostname} enrolled at ${enrolledAt?.toISOString()} but is not connected. Read the agent's log on the host.`,
  broken_off: ({ hostname }, seen) =>
    `The agent of ${hostname} never connected: ${seen}. An agent that does not trust the hub's certificate ends its handshakes like this, and so does a port scan. Read the agent's log on the host.`,
  answered: ({ hostname }, seen) =>
    `The agent of ${hostname} never connected, although the hub answered requests from the host: ${seen}. Read the host's first-boot log.`,
  silent: ({ hostname, addresses }) =>
    addresses.length === 0
      ? `The agent of ${hostname} never connected, and MAAS knows no address by which the hub could recognize the host. Check the route from the host to the hub and the host's first-boot log.`
      : `The agent of ${hostname} never connected, and no connection from the host's addresses was seen (${addresses.join(", ")}; behind address translation the hub sees other addresses). Check the route from the host to the hub and the host's first-boot log.`,
};
