import type { NodeId } from "../../shared/ids.ts";
import { recordNodeEvent } from "../db/queries/node-events.ts";
import { deleteHealthOverride, writeHealthOverride } from "../db/queries/node-health-overrides.ts";
import type { NodeHealthOverride } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";

/** The source of the override of a node whose disks were not erased as its operation asked (decision M9). */
export const DISK_ERASE = "disk-erase";

export async function setHealthOverride(tx: Tx, override: Omit<NodeHealthOverride, "since">): Promise<void> {
  await writeHealthOverride(tx, override);
  const { nodeId, source, target, reason, setBy } = override;
  const message = `${source}: ${reason}`;
  await recordNodeEvent(tx, { nodeId, type: "health_override_set", owner: setBy, message, details: { target } });
}

/** Removes the node's override of the source, with an event in the node's history. Returns null if the node has no such override. */
export async function removeHealthOverride(
  tx: Tx,
  nodeId: NodeId,
  source: string,
  { by, reason }: { readonly by: string; readonly reason: string },
): Promise<NodeHealthOverride | null> {
  const removed = await deleteHealthOverride(tx, nodeId, source);
  if (removed !== null)
    await recordNodeEvent(tx, { nodeId, type: "health_override_removed", owner: by, message: `${source}: ${reason}` });
  return removed;
}
