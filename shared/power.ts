import { z } from "zod";

/** What a person may ask of the power of a machine. A `cycle` switches the machine off for a minute, and a `reboot` only restarts its system. */
export const POWER_VERBS = ["on", "off", "cycle", "reboot"] as const;
export const PowerVerb = z.enum(POWER_VERBS);
export type PowerVerb = z.output<typeof PowerVerb>;

/** The states of a power action. An action is `superseded` when its instance ends, or another action takes its place. */
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

/** A report that the hub receives within this time after a machine went off by request counts as one from before. */
export const LATE_REPORT_SECONDS = 60;
