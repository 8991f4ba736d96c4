import { z } from "zod";

/**
 * The requests that a person may make to switch a machine's power or restart its system. The request `cycle` switches the machine off for a minute,
 * and the request `reboot` only restarts the machine's system.
 */
export const POWER_VERBS = ["on", "off", "cycle", "reboot"] as const;
export const PowerVerb = z.enum(POWER_VERBS);
export type PowerVerb = z.output<typeof PowerVerb>;

/**
 * The states of a power action. A power action is `superseded` when the tenant's allocation ends, when another power action takes its place, or when
 * the node no longer is as it was at the request.
 */
export const POWER_STATES = ["running", "done", "failed", "superseded"] as const;
export const PowerActionState = z.enum(POWER_STATES);
export type PowerActionState = z.output<typeof PowerActionState>;

/** Why a power action failed. */
export const POWER_ERRORS = [
  "power_action_failed",
  "power_state_unknown",
  "agent_unreachable",
  "machine_not_usable",
  "bmc_login_refused",
  "maas_refused",
] as const;
export type PowerError = (typeof POWER_ERRORS)[number];

/** After a requested power-off, the hub treats an agent's report within this time as sent before the power-off. */
export const LATE_REPORT_SECONDS = 60;
