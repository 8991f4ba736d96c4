import type { NodeId } from "../../shared/ids.ts";
import { recordNodeEvent } from "../db/queries/node-events.ts";
import {
  deleteHealthOverride,
  listHealthOverrides,
  type NewHealthOverride,
  writeHealthOverride,
} from "../db/queries/node-health-overrides.ts";
import type { NodeHealthOverride } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";

/** The source of the override of a node whose disks were not erased as its operation asked (decision M9). */
const DISK_ERASE = "disk-erase";

export async function setHealthOverride(tx: Tx, override: NewHealthOverride): Promise<void> {
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

type EraseKind = NonNullable<NodeHealthOverride["neededErase"]>;
const RANK: Readonly<Record<EraseKind, number>> = { quick: 1, secure: 2 };
/** True if an erase of the kind `done` removes what an erase of the kind `needed` would remove. A needed kind that nobody recorded counts as `secure`. */
export const isEnoughErase = (done: EraseKind, needed: EraseKind | null): boolean =>
  RANK[done] >= RANK[needed ?? "secure"];

const eraseOverride = async (tx: Tx, nodeId: NodeId): Promise<NodeHealthOverride | null> =>
  (await listHealthOverrides(tx, [nodeId])).find(({ source }) => source === DISK_ERASE) ?? null;

/**
 * Bars a node whose disks may not be erased. An override that stands keeps its stronger kind of erase. The bar of an operation leaves an override that
 * already demands as much unchanged, because the cause of that override still exists.
 */
export async function barUnerased(
  tx: Tx,
  bar: Omit<NewHealthOverride, "source" | "neededErase"> & { readonly neededErase: EraseKind },
): Promise<void> {
  const stands = await eraseOverride(tx, bar.nodeId);
  const needed = stands === null ? null : (stands.neededErase ?? "secure");
  if (needed !== null && isEnoughErase(needed, bar.neededErase)) {
    if (!bar.setBy.startsWith("operator:")) return;
    return setHealthOverride(tx, { ...bar, source: DISK_ERASE, neededErase: needed });
  }
  await setHealthOverride(tx, { ...bar, source: DISK_ERASE });
}

/** Ends the bar of a node whose disks were not erased, after evidence of an erase that is strong enough. */
export async function liftUnerased(
  tx: Tx,
  nodeId: NodeId,
  done: EraseKind,
  said: { readonly by: string; readonly reason: string },
): Promise<void> {
  const stands = await eraseOverride(tx, nodeId);
  if (stands !== null && isEnoughErase(done, stands.neededErase))
    await removeHealthOverride(tx, nodeId, DISK_ERASE, said);
}
