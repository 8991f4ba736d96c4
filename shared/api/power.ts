import { z } from "zod";
import { AllocationId, NodeId, PowerActionId } from "../ids.ts";
import { POWER_ERRORS, PowerActionState, PowerVerb } from "../power.ts";
import { Reason } from "./decommissions.ts";
import { Timestamp } from "./values.ts";

const immediate = z
  .boolean()
  .describe("Switch the power off at once; without it the host's system gets five minutes to shut down")
  .default(false);

export const PowerRequest = z.strictObject({ reason: Reason });
export const PowerOffRequest = z.strictObject({ reason: Reason, immediate });

export const NodePowerRequest = z.strictObject({
  reason: Reason,
  verb: PowerVerb.describe("What to do with the machine's power"),
  immediate,
  acknowledge_tenant: z
    .boolean()
    .describe("Needed for a node with a tenant, whose work the verb may end")
    .default(false),
});

/** A request to switch a machine's power or restart its system, and the outcome of the request. */
export const PowerAction = z.strictObject({
  id: PowerActionId,
  node_id: NodeId,
  hostname: z.string(),
  allocation_id: AllocationId.nullable(),
  verb: PowerVerb,
  immediate: z.boolean(),
  state: PowerActionState,
  requested_by: z.string(),
  reason: z.string(),
  requested_at: Timestamp,
  /** The time at which the power action fails if it has not come to its end by then. */
  deadline_at: Timestamp,
  wait_reason: z.string().nullable(),
  error_code: z.enum(POWER_ERRORS).nullable(),
  error_message: z.string().nullable(),
  next_action: z.string().nullable(),
  finished_at: Timestamp.nullable(),
});
