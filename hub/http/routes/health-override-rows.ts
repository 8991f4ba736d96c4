import type { z } from "zod";
import type { HealthOverride, NodeHealth } from "../../../shared/api/health-overrides.ts";
import type { NodeId } from "../../../shared/ids.ts";
import { isoOrNull } from "../../db/queries/workflow-views.ts";
import type { NodeHealthOverride } from "../../db/schema/index.ts";
import { aggregateAlerts, overridesInForce, overridesThat } from "../../node/health-aggregate.ts";
import { neededEraseOf } from "../../node/health-override.ts";

export function toHealthOverrides(rows: readonly NodeHealthOverride[]): z.output<typeof HealthOverride>[] {
  const inForce = new Set(overridesInForce(rows));
  return rows.map((row) => ({
    source: row.source,
    target: row.target,
    reason: row.reason,
    set_by: row.setBy,
    needed_erase: neededEraseOf(row),
    since: row.since.toISOString(),
    mode: row.mode,
    alerts: row.alerts === null ? null : [...row.alerts],
    in_force: inForce.has(row),
    expires_at: isoOrNull(row.expiresAt),
    revision: row.revision,
  }));
}

export const toNodeHealth = (nodeId: NodeId, rows: readonly NodeHealthOverride[]): NodeHealth => ({
  node_id: nodeId,
  health_overrides: toHealthOverrides(rows),
  alerts: aggregateAlerts(rows).map(({ since, sources, ...alert }) => ({
    ...alert,
    in_alert_since: since.toISOString(),
    sources: [...sources],
  })),
  prevents_allocations: overridesThat("PreventAllocations", rows).length > 0,
  prevents_release: overridesThat("PreventInstanceDeletion", rows).length > 0,
});
