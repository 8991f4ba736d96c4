import type { NodeId, SiteId } from "../../shared/ids.ts";
import { countMoves } from "../db/queries/breaker-counts.ts";
import { readBreaker } from "../db/queries/reconciler-breakers.ts";
import type { HoldBack } from "../node/offline-sweep.ts";
import { BREAKER_WINDOW_SECONDS, breakerTrips, moveLimit } from "./breaker.ts";
import { reportTrip } from "./trip.ts";

/**
 * After an outage of the hub itself, the breaker limits how many nodes of a site become offline (decision F1). After an outage of the hub, a silent
 * host has probably not failed, but has not reconnected yet. Nodes that the breaker keeps from becoming offline stay active, but their node
 * conditions keep new work off them. While the breaker is open, a node from which the hub last heard before the breaker opened does not become
 * offline. If the hub heard from a host after the breaker opened, and the host falls silent later, the breaker does not hold back its node. The
 * breaker for offline nodes exists for each site, so nodes without a site have none.
 */
export const offlineBreaker: HoldBack = async (tx, silent, afterOutage) => {
  const held = new Set<NodeId>();
  for (const [siteId, nodes] of Map.groupBy(silent, (node) => node.siteId)) {
    if (siteId === null) continue;
    for (const node of await heldBackAt(siteId, nodes)) held.add(node.id);
  }
  return held;

  async function heldBackAt(siteId: SiteId, nodes: typeof silent): Promise<typeof silent> {
    const { state, trippedAt } = await readBreaker(tx, siteId, "offline");
    if (state === "accepting") return [];
    const isOfTheTrip = ({ lastSeenAt }: (typeof silent)[number]) => trippedAt !== null && lastSeenAt < trippedAt;
    const others = nodes.filter((node) => !isOfTheTrip(node));
    return afterOutage && (await isStorm(siteId, others, trippedAt)) ? nodes : nodes.filter(isOfTheTrip);
  }

  async function isStorm(siteId: SiteId, nodes: typeof silent, follows: Date | null): Promise<boolean> {
    const besides = nodes.map((node) => node.id);
    const { inService, moved } = await countMoves(tx, siteId, "offline", {
      windowSeconds: BREAKER_WINDOW_SECONDS,
      besides,
    });
    const counts = { wouldMove: nodes.length, moved, inService };
    if (!breakerTrips(counts)) return false;
    await reportTrip(tx, { siteId, kind: "offline", ...counts, moveLimit: moveLimit(inService), follows }, nodes);
    return true;
  }
};
