import type { BreakerKind } from "../../../shared/drift.ts";
import type { NodeId, SiteId } from "../../../shared/ids.ts";
import { sql } from "../orm.ts";
import type { Node } from "../schema/index.ts";
import type { Tx } from "../tx.ts";

const MOVES = {
  quarantine: { to: "quarantined", owner: "reconciler" },
  offline: { to: "offline", owner: "heartbeat" },
} as const satisfies Record<Exclude<BreakerKind, "repair">, { to: Node["status"]; owner: string }>;

/**
 * SQL that is true if the host of the node `n` is away because of a requested power action, which no circuit breaker counts as a fault (decision
 * N10).
 */
const isIntended = sql`coalesce((select p.state = 'running' or (p.state = 'done' and p.verb = 'off') from power_actions p
  where p.node_id = n.id and p.generation = n.generation order by p.requested_at desc limit 1), false)`;

/**
 * Counts the site's nodes that are in service, or whose status changed in the way that the circuit breaker limits and within the breaker's time
 * window. The result `moved` counts only the nodes with a status change that the circuit breaker limits, whatever their status is now. The argument
 * `besides` names the nodes that are about to change status, which the result `moved` leaves out. A status change updates `updated_at` of the node,
 * so the query reads the history only of nodes that changed within the circuit breaker's time window.
 */
export async function countMoves(
  tx: Tx,
  siteId: SiteId,
  kind: keyof typeof MOVES,
  { windowSeconds, besides }: { windowSeconds: number; besides: readonly NodeId[] },
): Promise<{ inService: number; moved: number }> {
  const { to, owner } = MOVES[kind];
  const since = sql`now() - make_interval(secs => ${windowSeconds})`;
  const { rows } = await tx.execute<{ in_service: number; moved: number }>(sql`
    with moved as (
      select n.id from nodes n
      where n.site_id = ${siteId}::uuid and n.updated_at > ${since} and n.id <> all(${sql.param([...besides])}::uuid[])
        and exists (select from node_events e where e.node_id = n.id and e.type = 'status_changed'
          and e.to_status = ${to} and e.owner = ${owner} and e.occurred_at > ${since}) and not ${isIntended})
    select (select count(*) from nodes n where n.site_id = ${siteId}::uuid
        and (n.status in ('active', 'offline') or n.id in (select id from moved)))::int as in_service,
      (select count(*) from moved)::int as moved`);
  const [counted] = rows;
  if (counted === undefined) throw new Error("the status changes of a site could not be counted");
  return { inService: counted.in_service, moved: counted.moved };
}
