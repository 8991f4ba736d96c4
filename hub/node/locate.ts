import type { SiteId } from "../../shared/ids.ts";
import { recordNodeEvents } from "../db/queries/node-events.ts";
import { type PlacedHost, setLocationsByHostname, setNodeLocation } from "../db/queries/nodes.ts";
import type { Node } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";

type Placed = Pick<Node, "id" | "room" | "rack" | "unit" | "assetTag">;

/** Says in one line where a host stands and which asset tag it has. */
function toldPlace({ room, rack, unit, assetTag }: Omit<Placed, "id">): string {
  const place = [
    room === null ? null : `room ${room}`,
    rack === null ? null : `rack ${rack}`,
    unit === null ? null : `unit ${unit}`,
  ].filter((part) => part !== null);
  return `${place.length === 0 ? "no place" : place.join(", ")}; ${assetTag === null ? "no asset tag" : `asset tag ${assetTag}`}`;
}

const record = (tx: Tx, nodes: readonly Placed[], by: string): Promise<void> =>
  recordNodeEvents(
    tx,
    nodes.map(({ id, ...place }) => ({
      nodeId: id,
      type: "located",
      owner: `operator:${by}`,
      message: toldPlace(place),
    })),
  );

/** Changes a node's place, asset tag or both, and writes a change into the node's history. The caller has locked the node. */
export async function locate(tx: Tx, node: Node, to: Partial<Omit<Placed, "id">>, by: string): Promise<void> {
  const now = await setNodeLocation(tx, node.id, to);
  if (now !== null && toldPlace(now) !== toldPlace(node)) await record(tx, [now], by);
}

/** Sets the places of a site's nodes by their hostnames, and writes each change into the node's history. Returns the nodes that the site has. */
export async function locateByHostname(tx: Tx, siteId: SiteId, hosts: readonly PlacedHost[], by: string) {
  const found = await setLocationsByHostname(tx, siteId, hosts);
  await record(
    tx,
    found.filter(({ isChanged }) => isChanged),
    by,
  );
  return found;
}
