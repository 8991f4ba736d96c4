import type { BreakerKind } from "../../../shared/drift.ts";
import type { NodeId, SiteId } from "../../../shared/ids.ts";
import { sql } from "../orm.ts";
import type { Node } from "../schema/index.ts";
import type { Tx } from "../tx.ts";

/** The moves that each breaker may hold back (decision F1), as the history of a node tells them. */
const MOVES = {
  quarantine: { to: "quarantined", owner: "reconciler" },
  offline: { to: "offline", owner: "heartbeat" },
} as const satisfies Record<BreakerKind, { to: Node["status"]; owner: string }>;

/**
 * Nodes of the site that are in service now or were moved within the window, and how many were moved, whatever has become of them since. `besides`: those
 * that would be moved now, which count as that alone. Whoever was moved was changed since, so that only such nodes' histories are read.
 */
export async function countMoves(
  tx: Tx,
  siteId: SiteId,
  kind: BreakerKind,
  { windowSeconds, besides }: { windowSeconds: number; besides: readonly NodeId[] },
): Promise<{ inService: number; moved: number }> {
  const { to, owner } = MOVES[kind];
  const since = sql`now() - make_interval(secs => ${windowSeconds})`;
  const { rows } = await tx.execute<{ in_service: number; moved: number }>(sql`
    with moved as (
      select n.id from nodes n
      where n.site_id = ${siteId}::uuid and n.updated_at > ${since} and n.id <> all(${sql.param([...besides])}::uuid[])
        and exists (select from node_events e where e.node_id = n.id and e.type = 'status_changed'
          and e.to_status = ${to} and e.owner = ${owner} and e.occurred_at > ${since}))
    select (select count(*) from nodes n where n.site_id = ${siteId}::uuid
        and (n.status in ('active', 'offline') or n.id in (select id from moved)))::int as in_service,
      (select count(*) from moved)::int as moved`);
  const [counted] = rows;
  if (counted === undefined) throw new Error("the moves of a site could not be counted");
  return { inService: counted.in_service, moved: counted.moved };
}
