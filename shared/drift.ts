import { z } from "zod";

/** The kinds of drift come from lifecycle 6.2 and 6.4. */
const DRIFT_RULES = [
  "machine_deleted",
  "released_outside",
  "redeployed_outside",
  "hardware_failure",
  "recommissioned_outside",
  "rescue_mode",
  "unknown_maas_status",
  "powered_off",
  "agent_offline",
  "hardware_sync_stopped",
  "hardware_sync_interval",
  "host_changed",
  "retired_but_deployed",
] as const;
export const DriftRule = z.enum(DRIFT_RULES);
export type DriftRule = z.output<typeof DriftRule>;

/** The severities of drift, from the most to the least urgent. */
const DRIFT_SEVERITIES = ["critical", "high", "warning", "info"] as const;
export const DriftSeverity = z.enum(DRIFT_SEVERITIES);
export type DriftSeverity = z.output<typeof DriftSeverity>;

const DRIFT_ACTIONS = ["none", "quarantine", "update_host", "reseed_hardware_sync", "release_machine"] as const;
export const DriftAction = z.enum(DRIFT_ACTIONS);
export type DriftAction = z.output<typeof DriftAction>;

export const DriftDetails = z.strictObject({
  rule: DriftRule,
  severity: DriftSeverity,
  action: DriftAction,
  /** The status that the machine of the drift has in MAAS, or `absent` if MAAS has no such machine. */
  maas_status: z.string(),
  maas_status_code: z.int().nullable(),
  expected: z.string(),
  message: z.string(),
  detected_at: z.string(),
  /**
   * Why the reconciler did not do what the rule for this kind of drift (a difference between Muster and MAAS) demands. `held_back` of a drift is null
   * if the reconciler acted on the drift.
   */
  held_back: z.string().nullable(),
});
export type DriftDetails = z.output<typeof DriftDetails>;

export const DriftAcknowledged = z.strictObject({
  rule: DriftRule,
  maas_status_code: z.int().nullable(),
  by: z.string(),
  at: z.string(),
  reason: z.string(),
});
export type DriftAcknowledged = z.output<typeof DriftAcknowledged>;

/**
 * The acts that a breaker stops if they would affect too many nodes of a site at once (decision F1): two kinds of status change, and the automatic
 * requests for repair (repair 3).
 */
export const BREAKER_KINDS = ["quarantine", "offline", "repair"] as const;
export const BreakerKind = z.enum(BREAKER_KINDS);
export type BreakerKind = z.output<typeof BreakerKind>;
