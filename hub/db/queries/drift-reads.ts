import type { Breaker, Drift, ReconciliationStatus } from "../../../shared/api/reconciliation.ts";
import type { DriftRule, DriftSeverity } from "../../../shared/drift.ts";
import type { NodeId, SiteId } from "../../../shared/ids.ts";
import { and, asc, eq, isNotNull, or, type SQL, sql } from "../orm.ts";
import {
  maasSites,
  maasSiteWatches,
  type Node,
  type NodeMaasState,
  nodeMaasState,
  nodes,
  type ReconcilerBreaker,
} from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { databaseNow } from "./clock.ts";
import { isWithin, type Reach } from "./reach.ts";
import { listBreakers } from "./reconciler-breakers.ts";

const iso = (at: Date | null): string | null => at?.toISOString() ?? null;

export const toBreaker = (row: ReconcilerBreaker, now: Date): Breaker => ({
  site_id: row.siteId,
  kind: row.kind,
  state: row.trippedAt !== null ? "open" : row.acceptUntil !== null && row.acceptUntil > now ? "accepting" : "closed",
  tripped_at: iso(row.trippedAt),
  would_move: row.wouldMove,
  moved: row.moved,
  move_limit: row.moveLimit,
  in_service: row.inService,
  node_ids: row.nodeIds,
  accept_until: iso(row.acceptUntil),
  reset_at: iso(row.resetAt),
  reset_by: row.resetBy,
  reset_reason: row.resetReason,
});

type Columns = { node: Pick<Node, "id" | "hostname" | "status">; state: NodeMaasState };
const columns = { node: { id: nodes.id, hostname: nodes.hostname, status: nodes.status }, state: nodeMaasState };

const toDrift = ({ node, state }: Columns): Drift => ({
  node_id: node.id,
  hostname: node.hostname,
  node_status: node.status,
  site_id: state.siteId,
  maas_system_id: state.maasSystemId,
  last_maas_power_state: state.lastMaasPowerState,
  last_maas_ips: state.lastMaasIps ?? [],
  last_reconciled_at: iso(state.lastReconciledAt),
  drift_detected: state.driftDetected,
  drift_details: state.driftDetails,
  drift_resolved_at: iso(state.driftResolvedAt),
  acknowledged: state.driftAcknowledged,
  quarantined_at: iso(state.quarantinedAt),
});

export interface DriftFilter {
  readonly nodeId?: NodeId | undefined;
  readonly siteId?: SiteId | undefined;
  readonly rule?: DriftRule | undefined;
  readonly severity?: DriftSeverity | undefined;
  readonly acknowledged: boolean;
  readonly reach: Reach;
}

export async function listDrift(
  db: Db,
  { nodeId, siteId, rule, severity, acknowledged, reach }: DriftFilter,
  page: { limit: number; after: readonly string[] | null },
): Promise<Drift[]> {
  const detail = (key: string, value: string | undefined): SQL | undefined =>
    value === undefined ? undefined : sql`${nodeMaasState.driftDetails} ->> ${key} = ${value}`;
  const rows = await db
    .select(columns)
    .from(nodeMaasState)
    .innerJoin(nodes, eq(nodes.id, nodeMaasState.nodeId))
    .where(
      and(
        acknowledged
          ? or(eq(nodeMaasState.driftDetected, true), isNotNull(nodeMaasState.driftAcknowledged))
          : eq(nodeMaasState.driftDetected, true),
        nodeId === undefined ? undefined : eq(nodeMaasState.nodeId, nodeId),
        siteId === undefined ? undefined : eq(nodeMaasState.siteId, siteId),
        isWithin(reach, { site: nodeMaasState.siteId }),
        detail("rule", rule),
        detail("severity", severity),
        page.after === null
          ? undefined
          : sql`(${nodes.hostname}, ${nodes.id}::text) > (${page.after[0] ?? ""}, ${page.after[1] ?? ""})`,
      ),
    )
    .orderBy(asc(nodes.hostname), asc(sql`${nodes.id}::text`))
    .limit(page.limit);
  return rows.map(toDrift);
}

export async function readDrift(db: Db | Tx, nodeId: NodeId): Promise<Drift | null> {
  const [row] = await db
    .select(columns)
    .from(nodeMaasState)
    .innerJoin(nodes, eq(nodes.id, nodeMaasState.nodeId))
    .where(eq(nodeMaasState.nodeId, nodeId));
  return row === undefined ? null : toDrift(row);
}

const ZERO = { ok: 0, drifted: 0, acknowledged: 0, unreconciled: 0 };

/** The number of SQL statements for the reconciliation status (lifecycle 6.6) does not depend on the number of sites. */
export async function readReconciliationStatus(
  db: Db,
  siteId: SiteId | undefined,
  reach: Reach,
): Promise<ReconciliationStatus> {
  const when = (condition: SQL) => sql<number>`count(*) filter (where ${condition})::int`;
  const { driftDetected, driftAcknowledged, lastReconciledAt } = nodeMaasState;
  const judged = sql`not ${driftDetected} and ${driftAcknowledged} is null`;
  const counted = db
    .select({
      siteId: nodeMaasState.siteId,
      ok: when(sql`${judged} and ${lastReconciledAt} is not null`).as("ok"),
      drifted: when(sql`${driftDetected}`).as("drifted"),
      acknowledged: when(sql`not ${driftDetected} and ${driftAcknowledged} is not null`).as("acknowledged"),
      unreconciled: when(sql`${judged} and ${lastReconciledAt} is null`).as("unreconciled"),
    })
    .from(nodeMaasState)
    .groupBy(nodeMaasState.siteId)
    .as("counted");
  const { ok, drifted, acknowledged, unreconciled } = counted;
  const rows = await db
    .select({ site: maasSites, watch: maasSiteWatches, counted: { ok, drifted, acknowledged, unreconciled } })
    .from(maasSites)
    .leftJoin(maasSiteWatches, eq(maasSiteWatches.siteId, maasSites.id))
    .leftJoin(counted, eq(counted.siteId, maasSites.id))
    .where(and(siteId === undefined ? undefined : eq(maasSites.id, siteId), isWithin(reach, { site: maasSites.id })))
    .orderBy(asc(maasSites.name));
  const breakers = await listBreakers(db, reach);
  const now = await databaseNow(db);
  const sites = rows.map(({ site, watch, counted: one }) => ({
    site_id: site.id,
    name: site.name,
    status: site.status,
    ok: one?.ok ?? 0,
    drifted: one?.drifted ?? 0,
    acknowledged: one?.acknowledged ?? 0,
    unreconciled: one?.unreconciled ?? 0,
    last_look_at: iso(watch?.lastPollAt ?? null),
    last_sweep_at: iso(watch?.lastSweepAt ?? null),
    unreadable_machines: watch?.unreadableMachines ?? 0,
    consecutive_failures: watch?.consecutiveFailures ?? 0,
    last_error_code: watch?.lastErrorCode ?? null,
    breakers: breakers.filter((breaker) => breaker.siteId === site.id).map((breaker) => toBreaker(breaker, now)),
  }));
  const total = sites.reduce(
    (sum, site) => ({
      ok: sum.ok + site.ok,
      drifted: sum.drifted + site.drifted,
      acknowledged: sum.acknowledged + site.acknowledged,
      unreconciled: sum.unreconciled + site.unreconciled,
    }),
    ZERO,
  );
  return { ...total, sites };
}
