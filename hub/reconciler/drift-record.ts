import type { DriftAcknowledged, DriftDetails } from "../../shared/drift.ts";
import type { Finding, Judgement } from "./rules.ts";

export interface DriftRecord {
  readonly driftDetected: boolean;
  readonly driftDetails: DriftDetails | null;
  readonly driftAcknowledged: DriftAcknowledged | null;
}
export interface DriftStatus {
  readonly name: string;
  readonly code: number | null;
}

/**
 * The ways in which the reconciler's judgement of a node changes the node's stored drift, its difference from its MAAS machine. `raised`: the drift
 * is new. `updated`: the stored drift gets different details. `same`: the stored drift does not change. `resolved`: the node no longer has the drift.
 * `forgotten`: the node no longer has the drift that a person acknowledged. `acknowledged`: a person knows of the drift, so the reconciler does
 * nothing. `resolved_beside`: a person acknowledged the node's drift, and another drift of the node is over.
 */
export type DriftStep =
  | { readonly kind: "raised" | "updated"; readonly details: DriftDetails }
  | { readonly kind: "same" | "acknowledged" | "resolved" | "resolved_beside" | "forgotten" };

export const isAcknowledged = (finding: Finding, status: DriftStatus, known: DriftAcknowledged | null): boolean =>
  known !== null && known.rule === finding.rule && known.maas_status_code === status.code;

export function stepOf(
  judgement: Extract<Judgement, { kind: "judged" }>,
  status: DriftStatus,
  record: DriftRecord,
  heldBack: string | null,
  now: Date,
): DriftStep {
  const [finding] = judgement.findings;
  if (finding === undefined) {
    if (record.driftDetected) return { kind: "resolved" };
    return { kind: record.driftAcknowledged === null ? "same" : "forgotten" };
  }
  // If the first finding is the drift that a person acknowledged, another drift in the node's record is over.
  if (isAcknowledged(finding, status, record.driftAcknowledged))
    return { kind: record.driftDetected ? "resolved_beside" : "acknowledged" };
  const before = record.driftDetected ? record.driftDetails : null;
  const isNews = before === null || before.rule !== finding.rule;
  const details: DriftDetails = {
    rule: finding.rule,
    severity: finding.severity,
    action: finding.action,
    maas_status: status.name,
    maas_status_code: status.code,
    expected: finding.expected,
    message: finding.message,
    detected_at: isNews ? now.toISOString() : before.detected_at,
    held_back: finding.action === "none" ? null : heldBack,
  };
  if (isNews) return { kind: "raised", details };
  return sameDetails(before, details) ? { kind: "same" } : { kind: "updated", details };
}

const COMPARED = [
  "severity",
  "action",
  "maas_status",
  "maas_status_code",
  "expected",
  "message",
  "held_back",
] as const satisfies readonly (keyof DriftDetails)[];
const sameDetails = (a: DriftDetails, b: DriftDetails): boolean => COMPARED.every((key) => a[key] === b[key]);
