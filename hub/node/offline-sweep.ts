import type { NodeId } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import {
  CLOSED_AS_SILENT,
  closeSession,
  findSilentNodes,
  lockReturnedNodes,
  lockSilentNodes,
  type SilentNode,
} from "../db/queries/agent-sessions.ts";
import { newestPowerActions } from "../db/queries/power-actions.ts";
import type { InTx, Tx } from "../db/tx.ts";
import { periodically } from "../timing/periodically.ts";
import { writeConnected } from "./conditions.ts";
import { moveNode } from "./move-node.ts";
import { type PowerIntent, powerIntentOf, toldIntent } from "./power-intent.ts";

/**
 * The milliseconds beyond the heartbeat interval for which an agent may be silent before the hub counts the agent as unreachable. One lost heartbeat
 * must not make a node unreachable.
 */
const SILENCE_MS = 30_000;
const EVERY_MS = 5_000;
/**
 * The largest number of nodes that one transaction sets to `offline` or back to `active`. While a transaction locks the agents' sessions in order to
 * change the status of nodes, the hub cannot store when it last heard any agent.
 */
const SLICE = 100;

/** Returns the nodes that must stay active, because too many nodes would become offline at once (decision F1). */
export type HoldBack = (tx: Tx, nodes: readonly SilentNode[], afterOutage: boolean) => Promise<ReadonlySet<NodeId>>;

export interface SweepOptions {
  readonly inTx: InTx;
  /**
   * The time for which this hub has been running and able to search for silent nodes. The periodic search for silent nodes does not mark a node
   * offline if the node's heartbeat interval is more than half of `upForMs` (decision F2).
   */
  readonly upForMs: number;
  readonly silenceMs?: number;
  readonly holdBack: HoldBack;
  /**
   * True if this hub started a short time ago, or could not store for a while when it last heard the agents. After a start or an outage of the hub,
   * the silence of agents may be the hub's own fault.
   */
  readonly afterOutage: boolean;
}
export interface OfflineSweepOptions extends Omit<SweepOptions, "upForMs" | "afterOutage"> {
  readonly log: Log;
  /** The time after a hub's start in which no node's status becomes `offline` (decision F2). */
  readonly graceMs: number;
  readonly everyMs?: number;
}
export interface SweepResult {
  readonly offline: number;
  readonly returned: number;
}

/**
 * Sets active nodes that were silent for too long to `offline`, and offline nodes that report again to `active`. An unreachable host may still work,
 * so the hub changes only the node's status and a condition. The breaker, which keeps a mass of nodes from becoming offline at once, first decides
 * about all silent nodes together. After the breaker has decided which silent nodes stay active, the hub checks each silent node a second time in the
 * transaction that changes the node's status.
 */
export async function sweepOffline(options: SweepOptions): Promise<SweepResult> {
  const { inTx, afterOutage, upForMs, silenceMs = SILENCE_MS } = options;
  const { silent, held } = await inTx(async (tx) => {
    const found = await findSilentNodes(tx, { silenceMs, upForMs });
    const unintended = await withoutIntended(tx, found);
    return { silent: found, held: await options.holdBack(tx, unintended, afterOutage) };
  });
  // The first search that finds a silent node records the silence, even if the breaker, which limits how many nodes become offline at once, keeps the
  // node `active`. Later searches for silent nodes write nothing about a node that the breaker keeps `active`.
  const toWrite = silent.filter((node) => !(held.has(node.id) && node.session === "closed")).map((node) => node.id);
  let offline = 0;
  for (let at = 0; at < toWrite.length; at += SLICE) {
    offline += await inTx(async (tx) => {
      const still = await lockSilentNodes(tx, toWrite.slice(at, at + SLICE), { silenceMs, upForMs });
      // The breaker, which limits how many nodes become offline at once, may have opened since its first decision, so the hub asks the breaker again
      // about the nodes that are still silent.
      const heldSince = await options.holdBack(tx, await withoutIntended(tx, still), false);
      return fallSilent(tx, still, new Set([...held, ...heldSince]));
    });
  }
  let returned = 0;
  for (let last = SLICE; last === SLICE; returned += last) last = await inTx(bringBack);
  return { offline, returned };
}

const isActive = (node: SilentNode): boolean => node.status === "active";

/** Returns why nodes are silent by request, e.g. because their machines are powered off (decision N10). */
async function intentsOf(tx: Tx, silent: readonly SilentNode[]): Promise<ReadonlyMap<NodeId, PowerIntent>> {
  const newest = await newestPowerActions(
    tx,
    silent.map(({ id }) => id),
  );
  return new Map(
    silent.flatMap((node) => {
      const intent = powerIntentOf(newest.get(node.id), node, node.lastSeenAt);
      return intent === null ? [] : [[node.id, intent] as const];
    }),
  );
}

/** Returns the active nodes that are silent although nobody has requested it, for example by a power-off. Only these count for the breaker. */
async function withoutIntended(tx: Tx, silent: readonly SilentNode[]): Promise<SilentNode[]> {
  const intents = await intentsOf(tx, silent);
  return silent.filter((node) => isActive(node) && !intents.has(node.id));
}

/** Records that nodes have become silent, after the transaction has locked the agents' sessions of these nodes. */
async function fallSilent(tx: Tx, silent: readonly SilentNode[], held: ReadonlySet<NodeId>): Promise<number> {
  let offline = 0;
  const intents = await intentsOf(tx, silent);
  for (const node of silent) {
    const intent = intents.get(node.id);
    const silence = `No contact with the agent since ${node.lastSeenAt.toISOString()}`;
    const message = intent === undefined ? silence : `${silence}: ${toldIntent(intent)}`;
    await closeSession(tx, node.id, node.epoch, CLOSED_AS_SILENT);
    await writeConnected(tx, node, "Unknown", "Silent", message);
    if (!isActive(node) || held.has(node.id)) continue;
    const { moved } = await moveNode(tx, node.id, { from: "active", to: "offline", owner: "heartbeat" }, message);
    if (moved) offline += 1;
  }
  return offline;
}

/** Sets up to `SLICE` offline nodes, whose agents have reported again, to `active`. */
async function bringBack(tx: Tx): Promise<number> {
  const returned = await lockReturnedNodes(tx, SLICE);
  for (const node of returned) {
    const message = "The agent is in contact again";
    await moveNode(tx, node.id, { from: "offline", to: "active", owner: "heartbeat" }, message);
    await writeConnected(tx, node, "True", "Connected", message);
  }
  return returned.length;
}

/**
 * An outage of the hub or of its database must not count as an outage of its agents (decisions F1, F2). After the database was unavailable or the
 * process was paused, no node becomes offline during a new grace period.
 */
export function startOfflineSweep(options: OfflineSweepOptions): { close(): Promise<void> } {
  const everyMs = options.everyMs ?? EVERY_MS;
  let upSince = performance.now();
  let sweptAt = upSince;
  const turn = async (): Promise<void> => {
    const now = performance.now();
    if (now - sweptAt > 3 * everyMs) upSince = now;
    const upForMs = now - upSince;
    // During the grace period after a start or an outage, the hub's uptime counts as zero, so no node counts as silent. The periodic search for
    // silent nodes runs even in the grace period after a start, because a pause in the searches would begin the grace period again.
    const { offline } = await sweepOffline({
      ...options,
      upForMs: upForMs < options.graceMs ? 0 : upForMs,
      afterOutage: upForMs < 2 * options.graceMs,
    });
    sweptAt = performance.now();
    if (offline > 0) options.log.warn("nodes went offline", { count: offline });
  };
  return periodically({ everyMs, turn, log: options.log, failed: "the offline sweep failed" });
}
