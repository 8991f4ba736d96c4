import { z } from "zod";
import { BreakerKind, DriftAcknowledged, DriftDetails } from "../drift.ts";
import { NodeId, SiteId } from "../ids.ts";
import { NodeStatus } from "../node-status.ts";
import { Reason } from "./decommissions.ts";
import { Timestamp } from "./values.ts";

const counts = {
  ok: z.int(),
  drifted: z.int(),
  /** The number of drifts that a person has acknowledged. */
  acknowledged: z.int(),
  /** The number of nodes that the reconciler has not compared with MAAS since each node got its present machine. */
  unreconciled: z.int(),
};
export const Breaker = z.strictObject({
  site_id: SiteId,
  kind: BreakerKind,
  state: z.enum(["open", "accepting", "closed"]),
  tripped_at: Timestamp.nullable(),
  /**
   * How many nodes waited for a change of status when the breaker tripped. A breaker trips when more than `move_limit` nodes either wait for a change
   * of status or changed their status in the last ten minutes.
   */
  would_move: z.int(),
  moved: z.int(),
  move_limit: z.int(),
  in_service: z.int(),
  /** Some of the nodes whose change of status the breaker prevented when it tripped. */
  node_ids: z.array(NodeId),
  accept_until: Timestamp.nullable(),
  reset_at: Timestamp.nullable(),
  reset_by: z.string().nullable(),
  reset_reason: z.string().nullable(),
});
export type Breaker = z.output<typeof Breaker>;

export const ReconciliationStatus = z.strictObject({
  ...counts,
  sites: z.array(
    z.strictObject({
      site_id: SiteId,
      name: z.string(),
      status: z.enum(["active", "disabled"]),
      ...counts,
      last_look_at: Timestamp.nullable(),
      last_sweep_at: Timestamp.nullable(),
      /**
       * How many machines of the site the hub found in MAAS but could not read, when it last read all machines of the site. If the hub cannot read a
       * machine in MAAS, the hub treats the machine neither as changed nor as deleted.
       */
      unreadable_machines: z.int(),
      /** How many polls of the site have failed since the last successful poll. */
      consecutive_failures: z.int(),
      last_error_code: z.string().nullable(),
      breakers: z.array(Breaker),
    }),
  ),
});
export type ReconciliationStatus = z.output<typeof ReconciliationStatus>;

export const Drift = z.strictObject({
  node_id: NodeId,
  hostname: z.string(),
  node_status: NodeStatus,
  site_id: SiteId,
  maas_system_id: z.string(),
  last_maas_power_state: z.string().nullable(),
  last_maas_ips: z.array(z.string()),
  last_reconciled_at: Timestamp.nullable(),
  drift_detected: z.boolean(),
  drift_details: DriftDetails.nullable(),
  drift_resolved_at: Timestamp.nullable(),
  acknowledged: DriftAcknowledged.nullable(),
  quarantined_at: Timestamp.nullable(),
});
export type Drift = z.output<typeof Drift>;

/**
 * With the action `acknowledge`, a person says that a drift is known, and the reconciler ignores the drift until it changes. With the action
 * `return_to_service`, a person confirms that the cause of the node's quarantine is gone.
 */
export const DriftResolve = z.strictObject({ action: z.enum(["acknowledge", "return_to_service"]), reason: Reason });
export type DriftResolve = z.output<typeof DriftResolve>;

export const ReconciliationRun = z.strictObject({ site_id: SiteId });
export const ReconciliationRequested = z.strictObject({ site_id: SiteId, requested: z.literal(true) });

/** With `accept_drift`, an operator confirms that the drift is real, and the breaker lets every change of status through for a quarter of an hour. */
export const BreakerReset = z.strictObject({
  kind: BreakerKind.default("quarantine"),
  accept_drift: z.boolean().default(false),
  reason: Reason,
});
