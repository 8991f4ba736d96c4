import type { NodeId } from "../../shared/ids.ts";
import {
  CLOSED_AS_SILENT,
  closeSession,
  findReturnedNodes,
  findSilentNodes,
  type SilentNode,
} from "../db/queries/agent-sessions.ts";
import type { InTx, Tx } from "../db/tx.ts";
import type { Log } from "../log.ts";
import { writeConnected } from "./conditions.ts";
import { moveNode } from "./move-node.ts";

/** Silence beyond the time to live before an agent counts as unreachable: one lost beat is none. */
const SILENCE_MS = 30_000;
const EVERY_MS = 5_000;

/** Which of the nodes that would become offline may not, since they are too many at once (decision F1). */
export type HoldBack = (tx: Tx, nodes: readonly SilentNode[], afterOutage: boolean) => Promise<ReadonlySet<NodeId>>;

export interface SweepOptions {
  readonly inTx: InTx;
  /** How long this hub has been up and able to sweep; none is offline whose time to live is more than half of it (decision F2). */
  readonly upForMs: number;
  readonly silenceMs?: number;
  readonly holdBack: HoldBack;
  /** This hub has not been up, or able to write contacts, for long: what it has not heard of may be its own doing. */
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
 * Moves nodes that have been silent too long from active to offline, and back those that are heard of again. Unreachable is not dead: nothing
 * but the status and the condition changes, and the first hello brings them back too.
 */
export async function sweepOffline(options: SweepOptions): Promise<SweepResult> {
  return options.inTx(async (tx) => {
    const silent = await findSilentNodes(tx, options.silenceMs ?? SILENCE_MS, options.upForMs);
    const active = silent.filter((node) => node.status === "active");
    const held = await options.holdBack(tx, active, options.afterOutage);
    let offline = 0;
    for (const node of silent) {
      // It was told when it fell silent; as long as it is held back it is found by each sweep.
      if (held.has(node.id) && node.session === "closed") continue;
      const message = `No contact with the agent since ${node.lastSeenAt.toISOString()}`;
      await closeSession(tx, node.id, node.epoch, CLOSED_AS_SILENT);
      await writeConnected(tx, node, "Unknown", "Silent", message);
      if (node.status !== "active" || held.has(node.id)) continue;
      await moveNode(tx, node.id, { from: "active", to: "offline", owner: "heartbeat" }, message);
      offline += 1;
    }
    const returned = await findReturnedNodes(tx);
    for (const node of returned) {
      const message = "The agent is in contact again";
      await moveNode(tx, node.id, { from: "offline", to: "active", owner: "heartbeat" }, message);
      await writeConnected(tx, node, "True", "Connected", message);
    }
    return { offline, returned: returned.length };
  });
}

/**
 * Sweeps every few seconds. The grace begins anew after a gap, i.e. when the database was away or the process stood still: contacts could not
 * be written meanwhile, and a hub's own outage must not be taken for that of its agents (decisions F1, F2).
 */
export function startOfflineSweep(options: OfflineSweepOptions): { close(): void } {
  const everyMs = options.everyMs ?? EVERY_MS;
  let upSince = performance.now();
  let sweptAt = upSince;
  let sweeping = false;
  const sweep = async (): Promise<void> => {
    const now = performance.now();
    if (now - sweptAt > 3 * everyMs) upSince = now;
    const upForMs = now - upSince;
    // Before the grace is over the sweep only shows that it could: with no time up, no node is silent.
    const { offline } = await sweepOffline({
      ...options,
      upForMs: upForMs < options.graceMs ? 0 : upForMs,
      afterOutage: upForMs < 2 * options.graceMs,
    });
    sweptAt = performance.now();
    if (offline > 0) options.log.warn("nodes went offline", { count: offline });
  };
  const timer = setInterval(() => {
    if (sweeping) return;
    sweeping = true;
    sweep()
      .catch((error: unknown) => options.log.warn("the offline sweep failed", { error }))
      .finally(() => {
        sweeping = false;
      });
  }, everyMs);
  return { close: () => clearInterval(timer) };
}
