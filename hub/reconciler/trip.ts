import type { NodeId } from "../../shared/ids.ts";
import { recordDomainEvent } from "../db/queries/domain-events.ts";
import { type Trip, tripBreaker } from "../db/queries/reconciler-breakers.ts";
import type { Tx } from "../db/tx.ts";
import { BREAKER_WINDOW_SECONDS } from "./breaker.ts";

/** The largest number of nodes that the database names as the cause when a site's breaker opens. */
const NODES_NAMED = 50;

/** Opens a site's breaker and raises one critical alert about it (decision F1). A breaker that is already open raises no second alert. */
export async function reportTrip(
  tx: Tx,
  trip: Omit<Trip, "nodeIds">,
  nodes: readonly { id: NodeId; hostname: string }[],
): Promise<void> {
  const nodeIds = nodes.slice(0, NODES_NAMED).map((node) => node.id);
  if (!(await tripBreaker(tx, { ...trip, nodeIds }))) return;
  const { siteId, kind, wouldMove, moved, moveLimit, inService } = trip;
  const message = `${moved + wouldMove} nodes of the site would become ${kind === "offline" ? "offline" : "quarantined"} within ${BREAKER_WINDOW_SECONDS / 60} minutes, and the limit is ${moveLimit} of ${inService} in service. ${moved} have changed, and ${wouldMove} wait. No more nodes are moved. Find out whether the reports of MAAS and the agents are right, then reset the breaker, with accept_drift if they are.`;
  await recordDomainEvent(tx, {
    type: "site.breaker.tripped",
    subject: `maas-sites/${siteId}`,
    data: { site_id: siteId, kind, severity: "critical", would_move: wouldMove, moved, in_service: inService, message },
  });
}
