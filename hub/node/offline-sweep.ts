import { findSilentNodes } from "../db/queries/agent-sessions.ts";
import type { InTx } from "../db/tx.ts";
import type { Log } from "../log.ts";
import { writeConnected } from "./conditions.ts";
import { moveNode } from "./move-node.ts";

export interface OfflineSweepOptions {
  readonly inTx: InTx;
  readonly log: Log;
  /** Silence beyond the time to live before a node is offline, and the time after a hub start in which none is (decision F2). */
  readonly graceMs: number;
  readonly everyMs?: number;
}

/** Moves nodes that have been silent too long from active to offline. Unreachable is not dead: the first hello brings them back. */
export async function sweepOffline(options: Pick<OfflineSweepOptions, "inTx" | "graceMs">): Promise<number> {
  return options.inTx(async (tx) => {
    const silent = await findSilentNodes(tx, options.graceMs);
    for (const node of silent) {
      const since = node.lastSeenAt.toISOString();
      await moveNode(
        tx,
        node.id,
        { from: "active", to: "offline", owner: "heartbeat" },
        `No contact with the agent since ${since}`,
      );
      await writeConnected(tx, node, "Unknown", "Silent", `No contact with the agent since ${since}`);
    }
    return silent.length;
  });
}

export function startOfflineSweep(options: OfflineSweepOptions): { close(): void } {
  const startedAt = performance.now();
  const timer = setInterval(() => {
    if (performance.now() - startedAt < options.graceMs) return;
    sweepOffline(options).then(
      (moved) => moved > 0 && options.log.warn("nodes went offline", { count: moved }),
      (error: unknown) => options.log.warn("the offline sweep failed", { error }),
    );
  }, options.everyMs ?? 5_000);
  return { close: () => clearInterval(timer) };
}
