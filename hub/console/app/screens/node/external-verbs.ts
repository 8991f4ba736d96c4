import type { ExternalAttempt } from "./node-questions.ts";

export type ExternalVerb = "complete" | "fail" | "abandon";
type Standing = Pick<ExternalAttempt, "status" | "superseded" | "holder">;

/**
 * Returns why a report about an external system's attempt to provision the node has no effect now; null if the person can report it. Not only the
 * external system that began an attempt to provision the node may abandon it: any person with the right may do so.
 */
export function whyNotReported(verb: ExternalVerb, one: Standing, name: string): string | null {
  if (one.superseded) return "A newer attempt of the node has begun.";
  if (one.status === "abandoned") return "The attempt is abandoned. Its external system begins a new one.";
  if (one.status === "completed") return "The attempt has ended: the node came into service.";
  if (verb === "abandon") return null;
  if (one.holder !== name) return `Only ${one.holder}, who began the attempt, reports about it.`;
  return verb === "complete" && one.status === "verifying"
    ? "The host is completed already, and the node waits for its conditions."
    : null;
}
