/** What a status means for an operator. Each tone (good, busy, attention, bad, over) has the same colour and shape in the whole console. */
export type Tone = "good" | "busy" | "attention" | "bad" | "over";

const TONES: Readonly<Record<Tone, readonly string[]>> = {
  good: [
    "active",
    "completed",
    "reconciled",
    "valid",
    "ok",
    "True",
    "granted",
    "used",
    "delivered",
    "clean",
    "closed",
    "Ready",
    "synced",
  ],
  busy: [
    "bootstrap_issued",
    "enrolling",
    "draining",
    "removing",
    "pending",
    "running",
    "compensating",
    "granting",
    "ending",
    "approved",
    "accepting",
    "requested",
    "claimed",
    "begun",
    "in_progress",
    "verifying",
    "Pending",
    "Provisioning",
    "Terminating",
    "syncing",
  ],
  attention: [
    "failed_retryable",
    "paused",
    "warning",
    "Unknown",
    "incomplete",
    "stale",
    "reported",
    "repaired",
    "Repairing",
  ],
  bad: [
    "offline",
    "quarantined",
    "failed",
    "failed_manual_intervention",
    "refused",
    "open",
    "dead",
    "not_clean",
    "critical",
    "high",
    "False",
    "escalated",
    "Error",
    "error",
  ],
  over: [
    "retired",
    "deleted",
    "cancelled",
    "ended",
    "expired",
    "revoked",
    "withdrawn",
    "disabled",
    "info",
    "acknowledged",
    "abandoned",
  ],
};
const TONE_OF = new Map(
  Object.entries(TONES).flatMap(([tone, statuses]) => statuses.map((status) => [status, tone as Tone])),
);

/**
 * Returns the tone in which the console shows a status of the API. A status that the console does not know, for example of a newer hub, gets the
 * neutral tone `over`.
 */
export const toneOf = (status: string): Tone => TONE_OF.get(status) ?? "over";

export const words = (name: string): string => name.replaceAll("_", " ");

/** A count with its noun in the singular or plural: `1 node`, `2 nodes`. */
export const counted = (count: number, one: string, many = `${one}s`): string =>
  `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
