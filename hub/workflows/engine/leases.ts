import type { WorkflowId } from "../../../shared/ids.ts";
import { releaseAllLeases, renewLeases } from "../../db/queries/workflows.ts";
import type { Db } from "../../db/tx.ts";
import type { Log } from "../../log.ts";

interface Held {
  readonly fence: number;
  readonly abort: AbortController;
  readonly ended: Promise<void>;
}

/** The rows that this hub runs right now, and the upkeep of their leases: all renewed by one statement, three times a lease. */
export class Leases {
  readonly #held = new Map<WorkflowId, Held>();
  readonly #options: { db: Db; hubId: string; leaseSeconds: number; log: Log };
  readonly #timer: NodeJS.Timeout;
  #renewedAt = performance.now();

  constructor(options: { db: Db; hubId: string; leaseSeconds: number; log: Log }) {
    this.#options = options;
    this.#timer = setInterval(() => void this.#renew(), (options.leaseSeconds * 1000) / 3);
  }

  get size(): number {
    return this.#held.size;
  }

  /** Keeps the lease while `run` lasts; its signal is aborted when the lease is lost or the hub stops. */
  hold(row: { id: WorkflowId; fence: number }, run: (signal: AbortSignal) => Promise<void>): void {
    const abort = new AbortController();
    const ended = run(abort.signal).finally(() => {
      // The next claim of the same row may be known before this end is.
      if (this.#held.get(row.id)?.fence === row.fence) this.#held.delete(row.id);
    });
    this.#held.set(row.id, { fence: row.fence, abort, ended });
  }

  /** Lets runs end by themselves for `drainMs`, then aborts them, and gives every lease back. */
  async close(drainMs: number): Promise<void> {
    await this.#endedWithin(drainMs);
    this.#abortAll("the hub stops");
    await this.#endedWithin(drainMs);
    clearInterval(this.#timer);
    const { db, hubId, log } = this.#options;
    // Not given back, they lapse.
    await releaseAllLeases(db, hubId).catch((error: unknown) => log.warn("leases were not given back", { error }));
  }

  async #renew(): Promise<void> {
    const { db, hubId, leaseSeconds, log } = this.#options;
    const rows = [...this.#held].map(([id, { fence }]) => ({ id, fence }));
    try {
      const kept = rows.length === 0 ? new Set() : await renewLeases(db, hubId, leaseSeconds, rows);
      this.#renewedAt = performance.now();
      for (const { id, fence } of rows) {
        const held = this.#held.get(id);
        if (!kept.has(id) && held?.fence === fence) held.abort.abort(new Error("the lease was lost"));
      }
    } catch (error) {
      log.warn("workflow leases could not be renewed", { error, rows: rows.length });
      if (performance.now() - this.#renewedAt >= leaseSeconds * 1000) this.#abortAll("the lease has lapsed");
    }
  }

  #abortAll(reason: string): void {
    for (const { abort } of this.#held.values()) abort.abort(new Error(reason));
  }

  async #endedWithin(ms: number): Promise<void> {
    const runs = [...this.#held.values()].map((held) => held.ended);
    if (runs.length === 0) return;
    const { promise: timeout, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, ms);
    await Promise.race([Promise.allSettled(runs), timeout]);
    clearTimeout(timer);
  }
}
