import type { NodeId, SiteId } from "../../shared/ids.ts";
import { countAgentsInService } from "../db/queries/drift.ts";
import { readBreakerState } from "../db/queries/reconciler-breakers.ts";
import type { Log } from "../log.ts";
import type { HoldBack } from "../node/offline-sweep.ts";
import { BREAKER_WINDOW_SECONDS, breakerTrips, moveLimit } from "./breaker.ts";
import { reportTrip } from "./trip.ts";

/**
 * After a hub's own outage no more of a site's nodes become offline than the breaker lets through (decision F1): hosts that have not come back yet are
 * likelier than hosts that are gone. They stay active, and unschedulable by their conditions. Nodes of no site have no breaker.
 */
export const offlineBreaker =
  (log: Log): HoldBack =>
  async (tx, silent, afterOutage) => {
    const held = new Set<NodeId>();
    for (const [siteId, nodes] of Map.groupBy(silent, (node) => node.siteId)) {
      if (siteId === null) continue;
      const state = await readBreakerState(tx, siteId, "offline");
      if (state === "accepting" || (state === "closed" && !(afterOutage && (await isStorm(siteId, nodes))))) continue;
      for (const node of nodes) held.add(node.id);
    }
    return held;

    async function isStorm(siteId: SiteId, nodes: typeof silent): Promise<boolean> {
      const { inService, moved } = await countAgentsInService(tx, siteId, BREAKER_WINDOW_SECONDS);
      const counts = { wouldMove: nodes.length, moved, inService };
      if (!breakerTrips(counts)) return false;
      await reportTrip(tx, log, { siteId, kind: "offline", ...counts, moveLimit: moveLimit(inService) }, nodes);
      return true;
    }
  };
