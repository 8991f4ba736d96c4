import type { ExternalFinding } from "../../../shared/api/external-attempts.ts";
import type { ExternalState } from "../../../shared/external-attempt.ts";
import type { OnboardingMode } from "../../../shared/onboarding-mode.ts";

/** What an external system says about a host; `absent` if it does not name the host. */
export const SAID = ["provisioning", "provisioned", "failed", "absent"] as const;
export type Said = (typeof SAID)[number];

/**
 * What the hub knows about a host that an external system names: null if the hub has no node for the host, with `attempt` null if the node has no
 * provisioning attempt.
 */
export type Known = { readonly mode: OnboardingMode; readonly attempt: ExternalState | null } | null;

/**
 * The findings of a comparison with an external system that the hub may record as reports by itself, because the external system says them about its
 * own provisioning attempt.
 */
export const REPORT_OF_FINDING = {
  completion_unheard: "complete",
  failure_unheard: "fail",
} as const satisfies Partial<Record<ExternalFinding, "complete" | "fail">>;

const OPEN: ReadonlySet<ExternalState> = new Set(["begun", "in_progress", "lost", "late"]);
const PROVISIONED: ReadonlySet<ExternalState> = new Set(["verifying", "unverified", "completed"]);

/**
 * Compares what an external system says about a host with what the hub knows. `compareHost` compares only the provisioning: the node's conditions
 * decide whether the host is ready.
 */
export function compareHost(said: Said, known: Known): ExternalFinding {
  if (known === null) return said === "absent" ? "agrees" : "unknown_to_hub";
  if (known.mode !== "external") return said === "absent" ? "agrees" : "not_external";
  const { attempt } = known;
  const isOpen = attempt !== null && OPEN.has(attempt);
  const isProvisioned = attempt !== null && PROVISIONED.has(attempt);
  switch (said) {
    case "absent":
      return isOpen || isProvisioned ? "unknown_to_provisioner" : "agrees";
    case "provisioning":
      return isOpen ? "agrees" : "no_attempt_open";
    case "provisioned":
      if (isProvisioned) return "agrees";
      return isOpen ? "completion_unheard" : "no_attempt_open";
    case "failed":
      if (attempt === "failed" || attempt === "abandoned") return "agrees";
      if (isOpen) return "failure_unheard";
      return isProvisioned ? "not_provisioned" : "agrees";
  }
}

export const ABOUT_FINDING: Readonly<
  Record<ExternalFinding, { readonly message: string; readonly next: string | null }>
> = {
  agrees: { message: "Both sides agree", next: null },
  completion_unheard: {
    message: "The external system has provisioned the host, and the hub has not heard so",
    next: "Repeat the request with apply: true, or report the completion",
  },
  failure_unheard: {
    message: "The external system has failed, and the hub has not heard so",
    next: "Repeat the request with apply: true, or report the failure",
  },
  no_attempt_open: {
    message: "The hub knows no open attempt of the host",
    next: "Begin an attempt, or adopt the host if it is provisioned",
  },
  not_provisioned: {
    message: "The hub takes the host for provisioned, and the external system says that it failed",
    next: "Begin a new attempt, which takes the node out of service",
  },
  unknown_to_hub: { message: "The hub has no node of the host", next: "Begin an attempt, or adopt the host" },
  not_external: {
    message: "Another system than an external one provisions the host of this node",
    next: "Remove the host from the external system, or decommission the node",
  },
  unknown_to_provisioner: {
    message: "The external system does not know the host of this node",
    next: "Name the host in the request, or drain and remove the node",
  },
};
