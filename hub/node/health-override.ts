import { DISK_ERASE } from "../../shared/health-report.ts";
import type { NodeId } from "../../shared/ids.ts";
import { recordDomainEvent } from "../db/queries/domain-events.ts";
import { recordNodeEvent } from "../db/queries/node-events.ts";
import {
  deleteHealthOverride,
  type HeirMachine,
  listHealthOverrides,
  type NewHealthOverride,
  takeExpiredOverrides,
  takeLeftOverrides,
  writeHealthOverride,
} from "../db/queries/node-health-overrides.ts";
import { readNode } from "../db/queries/nodes.ts";
import { isoOrNull } from "../db/queries/workflow-views.ts";
import type { NodeHealthOverride } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";

export async function setHealthOverride(tx: Tx, override: NewHealthOverride): Promise<NodeHealthOverride> {
  const written = await writeHealthOverride(tx, override);
  const { nodeId, source, target, reason, setBy } = override;
  const message = `${source}: ${reason}`;
  await recordNodeEvent(tx, { nodeId, type: "health_override_set", owner: setBy, message, details: { target } });
  const data = { ...(await about(tx, nodeId)), source, target, reason, by: setBy };
  const subject = `nodes/${nodeId}`;
  const neededErase = neededEraseOf({ source, neededErase: override.neededErase ?? null });
  await recordDomainEvent(tx, {
    type: "node.health_override.set",
    subject,
    data: { ...data, needed_erase: neededErase, expires_at: isoOrNull(written.expiresAt) },
  });
  return written;
}

/** Returns the fields of a domain event that name the node. */
const about = async (tx: Tx, nodeId: NodeId) => ({
  node_id: nodeId,
  hostname: (await readNode(tx, nodeId))?.hostname ?? "",
});

async function tellLifted(tx: Tx, nodeId: NodeId, source: string, { by, reason }: Said): Promise<void> {
  await recordNodeEvent(tx, { nodeId, type: "health_override_removed", owner: by, message: `${source}: ${reason}` });
  const data = { ...(await about(tx, nodeId)), source, by, reason };
  await recordDomainEvent(tx, { type: "node.health_override.lifted", subject: `nodes/${nodeId}`, data });
}

/** The person or part of Muster that ended a health override, and the reason. */
interface Said {
  readonly by: string;
  readonly reason: string;
}

/**
 * Removes the node's health override with the given source, and records the removal in the node's history. `removeHealthOverride` returns null if the
 * node has no health override with this source.
 */
export async function removeHealthOverride(
  tx: Tx,
  nodeId: NodeId,
  source: string,
  said: Said,
): Promise<NodeHealthOverride | null> {
  const removed = await deleteHealthOverride(tx, nodeId, source);
  if (removed !== null) await tellLifted(tx, nodeId, source, said);
  return removed;
}

/**
 * Ends the health overrides whose time is over, at most `most` in one call, and records each end in the history of the override's node. The argument
 * `of` limits `endExpiredOverrides` to the health overrides of one node. Returns the number of ended overrides.
 */
export async function endExpiredOverrides(tx: Tx, most: number, of: NodeId | null = null): Promise<number> {
  const ended = await takeExpiredOverrides(tx, most, of);
  for (const { nodeId, source, expiresAt } of ended)
    await tellLifted(tx, nodeId, source, { by: "hub", reason: `It expired at ${isoOrNull(expiresAt)}` });
  return ended.length;
}

type EraseKind = NonNullable<NodeHealthOverride["neededErase"]>;
const RANK: Readonly<Record<EraseKind, number>> = { quick: 1, secure: 2 };
/**
 * True if an erase of the kind `done` is at least as strong as an erase of the kind `needed`. If nobody recorded which kind of erase is needed, the
 * erase must be `secure`.
 */
export const isEnoughErase = (done: EraseKind, needed: EraseKind | null): boolean =>
  RANK[done] >= RANK[needed ?? "secure"];

/** Returns the weakest kind of erase that lifts a health override. `neededEraseOf` returns null for an override that is not about an erase. */
export const neededEraseOf = ({ source, neededErase }: Pick<NodeHealthOverride, "source" | "neededErase">) =>
  source === DISK_ERASE ? (neededErase ?? "secure") : null;

const eraseOverride = async (tx: Tx, nodeId: NodeId): Promise<NodeHealthOverride | null> =>
  (await listHealthOverrides(tx, [nodeId])).find(({ source }) => source === DISK_ERASE) ?? null;

/**
 * Keeps new work off a node whose disks were perhaps not erased. If the node already has an override with a stronger kind of erase, the override
 * keeps the stronger kind. An operation does not change a health override that already demands a strong enough erase, because the cause of that
 * override still exists.
 */
export async function barUnerased(
  tx: Tx,
  bar: Omit<NewHealthOverride, "source" | "neededErase"> & { readonly neededErase: EraseKind },
): Promise<void> {
  const stands = await eraseOverride(tx, bar.nodeId);
  const needed = stands === null ? null : (stands.neededErase ?? "secure");
  if (needed !== null && isEnoughErase(needed, bar.neededErase)) {
    if (!bar.setBy.startsWith("operator:")) return;
    await setHealthOverride(tx, { ...bar, source: DISK_ERASE, neededErase: needed });
    return;
  }
  await setHealthOverride(tx, { ...bar, source: DISK_ERASE });
}

/** Allows new work on a node whose disks were perhaps not erased, if evidence now shows a strong enough erase. */
export async function liftUnerased(tx: Tx, nodeId: NodeId, done: EraseKind, said: Said): Promise<void> {
  const stands = await eraseOverride(tx, nodeId);
  if (stands !== null && isEnoughErase(done, stands.neededErase))
    await removeHealthOverride(tx, nodeId, DISK_ERASE, said);
}

/**
 * Moves the health overrides that deleted nodes left for a machine to the machine's present node, with their reasons, authors and times. Of two
 * overrides about an erase of disks, the node keeps the override that needs the stronger erase. For a source that is not about an erase, the node
 * keeps a health override that it already has, and does not get the inherited override of the same source.
 */
export async function inheritHealthOverrides(tx: Tx, heir: HeirMachine): Promise<void> {
  const { nodeId, maasSystemId: target } = heir;
  for (const {
    nodeId: former,
    revision: _revision,
    preventsAllocations: _bars,
    ...override
  } of await takeLeftOverrides(tx, heir)) {
    const { source, setBy, neededErase } = override;
    if (override.mode === "replace") {
      await tellLifted(tx, former, source, { by: setBy, reason: "A replacement ends with its node" });
      continue;
    }
    await tellLifted(tx, former, source, { by: setBy, reason: `Node ${nodeId} has the host now, and the override` });
    const stands = (await listHealthOverrides(tx, [nodeId])).find((one) => one.source === source);
    const weaker = source === DISK_ERASE && !isEnoughErase(stands?.neededErase ?? "secure", neededErase);
    if (stands === undefined || weaker) await setHealthOverride(tx, { ...override, nodeId, target });
  }
}
