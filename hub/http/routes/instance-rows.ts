import type { z } from "zod";
import type { Instance } from "../../../shared/api/instances.ts";
import { HEALTH_TEMPLATES } from "../../../shared/health-report.ts";
import { isFailed } from "../../../shared/workflow-status.ts";
import { type InstanceFacts, instanceStatus } from "../../allocations/instance-status.ts";
import { readInstanceHosts } from "../../db/queries/instances.ts";
import { listHealthOverrides } from "../../db/queries/node-health-overrides.ts";
import { readReadiness } from "../../db/queries/node-readiness.ts";
import { newestPowerActions } from "../../db/queries/power-actions.ts";
import { isAccountLost, type OpenReinstall, openReinstallsOf } from "../../db/queries/reinstalls.ts";
import { isoOrNull } from "../../db/queries/workflow-views.ts";
import type { AllocationRow } from "../../db/schema/index.ts";
import type { Db, Tx } from "../../db/tx.ts";
import { overridesInForce } from "../../node/health-aggregate.ts";
import { powerIntentOf } from "../../node/power-intent.ts";
import { readinessOf } from "../../node/readiness-verdict.ts";
import { readinessFactsOf } from "../../node/scheduling-facts.ts";
import { toPowerAction } from "./power-rows.ts";

/** The sources of the health overrides that show that a host is under repair. */
const REPAIRS: ReadonlySet<string> = new Set([
  HEALTH_TEMPLATES.RequestRepair.source,
  HEALTH_TEMPLATES.RequestOnlineRepair.source,
  HEALTH_TEMPLATES.OutForRepair.source,
]);

export type OpenRow = AllocationRow & { readonly status: Exclude<AllocationRow["status"], "ended"> };
export const isOpen = (row: AllocationRow): row is OpenRow => row.status !== "ended";

const reinstallOf = (open: OpenReinstall | undefined): InstanceFacts["reinstall"] =>
  open === undefined ? null : { failed: isFailed(open.status) };

/** Computes the API's instances, one for each open allocation, with a fixed number of SQL statements. */
export async function toInstances(db: Db | Tx, rows: readonly OpenRow[]): Promise<z.input<typeof Instance>[]> {
  const nodeIds = [...new Set(rows.map(({ nodeId }) => nodeId))];
  const readiness = new Map((await readReadiness(db, nodeIds)).map((row) => [row.node.id, row]));
  const overrides = await listHealthOverrides(db, nodeIds);
  const powers = await newestPowerActions(db, nodeIds);
  const reinstalls = await openReinstallsOf(db, nodeIds);
  const hosts = await readInstanceHosts(
    db,
    rows.map(({ id }) => id),
  );
  return rows.map((row) => {
    const known = readiness.get(row.nodeId);
    const host = hosts.get(row.id);
    const power = powers.get(row.nodeId);
    const verdict = instanceStatus({
      allocation: row.status,
      node: known?.node.status ?? null,
      lacks:
        known === undefined
          ? []
          : readinessOf(readinessFactsOf(known), known.conditions).lacking.map(({ kind }) => kind),
      isRepaired: overridesInForce(overrides.filter(({ nodeId }) => nodeId === row.nodeId)).some(({ source }) =>
        REPAIRS.has(source),
      ),
      power:
        known === undefined ? null : (powerIntentOf(power, known.node, known.node.lastAgentContactAt)?.kind ?? null),
      hasFailedTurnover: host?.hasFailedTurnover ?? false,
      reinstall: reinstallOf(reinstalls.get(row.nodeId)),
      isLostToReinstall: isAccountLost(row),
    });
    const { room = null, rack = null, unit = null } = known?.node ?? {};
    return {
      id: row.id,
      tenant: row.tenant,
      site_id: row.siteId,
      node_id: row.nodeId,
      hostname: row.hostname,
      status: verdict.status,
      status_reason: verdict.reason,
      next_action: verdict.nextAction,
      labels: row.labels,
      login_user: row.loginUser,
      host: known?.node.host ?? null,
      port: known?.node.port ?? 22,
      sku_id: known?.node.sku ?? null,
      location: { room, rack, unit },
      zone: host?.zone ?? null,
      power_state: host?.powerState ?? null,
      power_action: power?.allocationId === row.id ? toPowerAction(power) : null,
      created_at: row.createdAt.toISOString(),
      active_at: isoOrNull(row.activeAt),
      ends_at: isoOrNull(row.endsAt),
    };
  });
}
