import type { NodeId } from "../../shared/ids.ts";
import {
  CLOSED_AS_SILENT,
  closeSession,
  findSilentNodes,
  lockReturnedNodes,
  lockSilentNodes,
  type SilentNode,
} from "../db/queries/agent-sessions.ts";
import type { InTx, Tx } from "../db/tx.ts";
import type { Log } from "../log.ts";
import { periodically } from "../timing/periodically.ts";
import { writeConnected } from "./conditions.ts";
import { moveNode } from "./move-node.ts";

/** How long an agent may be silent beyond its time to live before it counts as unreachable: one lost heartbeat is not enough. */
const SILENCE_MS = 30_000;
const EVERY_MS = 5_000;
/** Nodes moved in one transaction. A contact of one of them waits until it ends, and so do all contacts of the same second. */
const SLICE = 100;

/** Returns which of the nodes that would become offline must not, because they are too many at once (decision F1). */
export type HoldBack = (tx: Tx, nodes: readonly SilentNode[], afterOutage: boolean) => Promise<ReadonlySet<NodeId>>;

export interface SweepOptions {
  readonly inTx: InTx;
  /** How long this hub has been running and able to sweep. A node whose time to live is more than half of this is not marked offline (decision F2). */
  readonly upForMs: number;
  readonly silenceMs?: number;
  readonly holdBack: HoldBack;
  /** This hub has not been running, or able to write contacts, for long: silence may be its own fault. */
  readonly afterOutage: boolean;
}
export interface OfflineSweepOptions extends Omit<SweepOptions, "upForMs" | "afterOutage"> {
  readonly log: Log;
  /** Time after a hub start in which no node is moved (decision F2). */
  readonly graceMs: number;
  readonly everyMs?: number;
}
export interface SweepResult {
  readonly offline: number;
  readonly returned: number;
}

/**
 * Moves nodes that have been silent too long from active to offline, and nodes that report again back to active. Unreachable does not mean dead: only
 * the status and the condition change, and the first hello brings the nodes back too. The number that may be moved is decided over all of them. Then each is
 * checked again in the transaction that moves it, some at a time.
 */
export async function sweepOffline(options: SweepOptions): Promise<SweepResult> {
  const { inTx, afterOutage, upForMs, silenceMs = SILENCE_MS } = options;
  const { silent, held } = await inTx(async (tx) => {
    const found = await findSilentNodes(tx, { silenceMs, upForMs });
    return { silent: found, held: await options.holdBack(tx, found.filter(isActive), afterOutage) };
  });
  // A node that is held back was recorded as silent when it became so; each sweep finds it again while it is held back.
  const toWrite = silent.filter((node) => !(held.has(node.id) && node.session === "closed")).map((node) => node.id);
  let offline = 0;
  for (let at = 0; at < toWrite.length; at += SLICE) {
    offline += await inTx(async (tx) => {
      const still = await lockSilentNodes(tx, toWrite.slice(at, at + SLICE), { silenceMs, upForMs });
      // A breaker that has opened since also holds nodes back; they still count.
      const heldSince = await options.holdBack(tx, still.filter(isActive), false);
      return fallSilent(tx, still, new Set([...held, ...heldSince]));
    });
  }
  let returned = 0;
  for (let last = SLICE; last === SLICE; returned += last) last = await inTx(bringBack);
  return { offline, returned };
}

const isActive = (node: SilentNode): boolean => node.status === "active";

/** Moves these nodes, which the transaction has locked, to offline. Returns how many became offline. */
async function fallSilent(tx: Tx, silent: readonly SilentNode[], held: ReadonlySet<NodeId>): Promise<number> {
  let offline = 0;
  for (const node of silent) {
    const message = `No contact with the agent since ${node.lastSeenAt.toISOString()}`;
    await closeSession(tx, node.id, node.epoch, CLOSED_AS_SILENT);
    await writeConnected(tx, node, "Unknown", "Silent", message);
    if (!isActive(node) || held.has(node.id)) continue;
    const { moved } = await moveNode(tx, node.id, { from: "active", to: "offline", owner: "heartbeat" }, message);
    if (moved) offline += 1;
  }
  return offline;
}

/** Makes some of the nodes active that report again; returns how many. */
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
 * Sweeps every few seconds. The grace period starts again after a gap, i.e. when the database was unavailable or the process was paused. Contacts could not
 * be written meanwhile, and an outage of the hub must not count as an outage of its agents (decisions F1, F2).
 */
export function startOfflineSweep(options: OfflineSweepOptions): { close(): Promise<void> } {
  const everyMs = options.everyMs ?? EVERY_MS;
  let upSince = performance.now();
  let sweptAt = upSince;
  const turn = async (): Promise<void> => {
    const now = performance.now();
    if (now - sweptAt > 3 * everyMs) upSince = now;
    const upForMs = now - upSince;
    // During the grace period the sweep only shows that it can run: with no uptime, no node counts as silent.
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
