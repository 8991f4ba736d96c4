import type { WorkflowId } from "../../../shared/ids.ts";
import type { Log } from "../../../shared/log.ts";
import { releaseAllLeases, renewLeases } from "../../db/queries/workflows.ts";
import type { Db } from "../../db/tx.ts";
import { workflowLeasesLost } from "../../metrics/counted/workflow-runs.ts";
import { within } from "../../timing/pause.ts";

interface Held {
  readonly fence: number;
  /**
   * The end of the lease on the workflow's row, as a value of `performance.now()`. No other hub takes over the workflow's row before the time
   * `until`, because in the database the lease ends later than by this hub's count.
   */
  until: number;
  readonly abort: AbortController;
  readonly ended: Promise<void>;
}

/** In each lease period, the hub checks `CHECKS_PER_LEASE` times for leases that are about to expire. */
const CHECKS_PER_LEASE = 12;

/**
 * One SQL statement renews all leases of the hub, three times in each lease period. If a renewal of its leases fails, the hub aborts each run before
 * another hub may take over the run's workflow. Only a paused hub can still run a workflow that another hub has taken over, and the fence rejects the
 * paused hub's result.
 */
export class Leases {
  readonly #held = new Map<WorkflowId, Held>();
  readonly #options: { db: Db; hubId: string; leaseSeconds: number; log: Log };
  readonly #timers: readonly NodeJS.Timeout[];

  constructor(options: { db: Db; hubId: string; leaseSeconds: number; log: Log }) {
    this.#options = options;
    const leaseMs = options.leaseSeconds * 1000;
    this.#timers = [
      setInterval(() => void this.#renew(), leaseMs / 3),
      setInterval(() => this.#abortLapsing(leaseMs / CHECKS_PER_LEASE), leaseMs / CHECKS_PER_LEASE),
    ];
  }

  get size(): number {
    return this.#held.size;
  }

  /**
   * Renews the lease on a workflow's row while `run` lasts. The engine aborts the signal of `run` when the hub loses the lease on the workflow's row
   * or stops. `claimSentAt` is the value of `performance.now()` before the hub sent the claim of the row to the database.
   */
  hold(row: { id: WorkflowId; fence: number }, claimSentAt: number, run: (signal: AbortSignal) => Promise<void>): void {
    const until = claimSentAt + this.#options.leaseSeconds * 1000;
    const abort = new AbortController();
    const ended = run(abort.signal).finally(() => {
      // When the run of a workflow ends, the hub may already hold a newer lease on the workflow's row, with another fence. The end of an older run
      // must not delete a newer lease.
      if (this.#held.get(row.id)?.fence === row.fence) this.#held.delete(row.id);
    });
    this.#held.set(row.id, { fence: row.fence, until, abort, ended });
  }

  async close(drainMs: number): Promise<void> {
    await this.#endedWithin(drainMs);
    this.#abortAll("the hub stops");
    await this.#endedWithin(drainMs);
    for (const timer of this.#timers) clearInterval(timer);
    const { db, hubId, log } = this.#options;
    // Leases that the hub cannot release expire by themselves.
    await releaseAllLeases(db, hubId).catch((error: unknown) => log.warn("leases were not given back", { error }));
  }

  async #renew(): Promise<void> {
    const { db, hubId, leaseSeconds, log } = this.#options;
    const rows = [...this.#held].map(([id, { fence }]) => ({ id, fence }));
    if (rows.length === 0) return;
    const sentAt = performance.now();
    try {
      const kept = await renewLeases(db, hubId, leaseSeconds, rows);
      for (const { id, fence } of rows) {
        const held = this.#held.get(id);
        if (held?.fence !== fence) continue;
        if (kept.has(id)) held.until = Math.max(held.until, sentAt + leaseSeconds * 1000);
        else {
          if (!held.abort.signal.aborted) workflowLeasesLost.add({ because: "taken" });
          held.abort.abort(new Error("the lease was lost"));
        }
      }
    } catch (error) {
      log.warn("workflow leases could not be renewed", { error, rows: rows.length });
    }
  }

  #abortLapsing(withinMs: number): void {
    const now = performance.now();
    for (const { until, abort } of this.#held.values())
      if (until - now <= withinMs && !abort.signal.aborted) {
        workflowLeasesLost.add({ because: "not_renewed" });
        abort.abort(new Error("the lease lapses"));
      }
  }

  #abortAll(reason: string): void {
    for (const { abort } of this.#held.values()) abort.abort(new Error(reason));
  }

  async #endedWithin(ms: number): Promise<void> {
    const runs = [...this.#held.values()].map((held) => held.ended);
    if (runs.length === 0) return;
    await within(ms, Promise.allSettled(runs));
  }
}
