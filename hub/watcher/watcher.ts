import type { SiteId } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import {
  type HeldWatch,
  holdWatch,
  keepWatches,
  recordFailedPoll,
  releaseWatch,
} from "../db/queries/maas-site-watches.ts";
import type { Db, InTx } from "../db/tx.ts";
import { MaasError, type MaasPort } from "../maas/port.ts";
import { sitePolls } from "../metrics/counted/site-polls.ts";
import { SecretError } from "../secrets/port.ts";
import { pause } from "../timing/pause.ts";
import { failurePauseMs } from "./plan.ts";
import { emptyMemory, type PollResult, pollSite } from "./poll.ts";

export interface WatcherOptions {
  readonly db: Db;
  readonly inTx: InTx;
  readonly hubId: string;
  /** The argument `signal` ends the client's requests to MAAS when the hub stops polling the site. */
  readonly clientFor: (siteId: SiteId, signal: AbortSignal) => Promise<MaasPort>;
  readonly log: Log;
  readonly pollIntervalMs: number;
  readonly sweepIntervalMs: number;
  /**
   * The time in milliseconds between MAAS's last list of machines and the hub's request for the next list of machine ids; four minutes by default.
   */
  readonly rollCallMs?: number;
  /** The hub calls `onPolled` after each poll of a site's MAAS region whose results it has stored, but not if another hub has taken the site over. */
  readonly onPolled?: (poll: SitePollResult) => Promise<void>;
}
export interface SitePollResult extends PollResult {
  readonly siteId: SiteId;
  readonly fence: number;
  readonly maas: MaasPort;
}
export interface Watcher {
  wake(siteId: SiteId): void;
  close(): Promise<void>;
}

/**
 * The length in seconds of the lease under which one hub watches a site. If a hub dies, another hub begins to watch its sites after about the length
 * of the lease.
 */
const LEASE_SECONDS = 3;
/** Three times during a lease, the hub renews its leases of sites and searches the database for new sites and for requested polls. */
const KEEP_EVERY_MS = 1_000;
const LEAST_KEEP_MS = 100;
/** The largest random delay in milliseconds, so that hubs which wait for the same lease do not try to take it at the same moment. */
const SPREAD_MS = 50;

/**
 * Runs one polling loop for each site that this hub watches. The polling loops of the sites are independent, so a site whose MAAS does not answer
 * never slows another site (lifecycle 6.3). Each second a hub reads from the database when the leases of other hubs expire, and it tries to take the
 * lease of a site as soon as this lease expires.
 */
export function startWatcher(options: WatcherOptions): Watcher {
  const { db, hubId, log } = options;
  const stop = new AbortController();
  const loops = new Map<SiteId, SiteLoop>();
  const closing = new Set<Promise<void>>();
  const drop = (siteId: SiteId, loop: SiteLoop): void => {
    loops.delete(siteId);
    // Closing a site's polling loop aborts a poll of the site that hangs. The hub renews the leases of other sites without waiting until the polling
    // of a dropped site has ended.
    const closed = loop.close().finally(() => closing.delete(closed));
    closing.add(closed);
  };
  const keepOnce = async (): Promise<number> => {
    const sites = await keepWatches(db, hubId, LEASE_SECONDS);
    const ours = new Map(sites.filter((site) => site.ours).map((site) => [site.siteId, site]));
    for (const [siteId, { wake }] of ours) {
      const loop = loops.get(siteId);
      if (loop === undefined) loops.set(siteId, new SiteLoop(options, siteId));
      else if (wake) loop.wakeIfAtRest();
    }
    for (const [siteId, loop] of loops) if (!ours.has(siteId)) drop(siteId, loop);
    const soonest = Math.min(...sites.filter((site) => !site.ours).map((site) => site.lapsesInMs));
    return Math.max(LEAST_KEEP_MS, Math.min(KEEP_EVERY_MS, soonest)) + Math.random() * SPREAD_MS;
  };
  const keep = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      const pauseMs = await keepOnce().catch((error: unknown) => {
        log.warn("the leases on sites could not be renewed", { error });
        return KEEP_EVERY_MS;
      });
      await pause(pauseMs, stop.signal);
    }
  };
  const keeping = keep();
  return {
    wake: (siteId) => loops.get(siteId)?.wake(),
    close: async () => {
      stop.abort();
      await keeping;
      for (const [siteId, loop] of loops) drop(siteId, loop);
      await Promise.all(closing);
    },
  };
}

/** Polls the MAAS region of one site again and again while this hub holds the site's lease, which `startWatcher` renews. */
class SiteLoop {
  readonly #options: WatcherOptions;
  readonly #siteId: SiteId;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  #memory = emptyMemory();
  #fence: number | null = null;
  /** True if a poll of the site was requested after the last poll began. */
  #woken = false;
  #rung: (() => void) | null = null;

  constructor(options: WatcherOptions, siteId: SiteId) {
    this.#options = options;
    this.#siteId = siteId;
    this.#running = this.#run();
  }

  wake(): void {
    this.#woken = true;
    this.#rung?.();
  }

  /**
   * Ends the pause before the site's next poll, because the database holds a request for a poll. While a poll of the site runs, `wakeIfAtRest` does
   * nothing, because the running poll or the next one serves the request for a poll.
   */
  wakeIfAtRest(): void {
    if (this.#rung !== null) this.wake();
  }

  async close(): Promise<void> {
    this.#stop.abort();
    this.#rung?.();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { db, hubId, log, pollIntervalMs } = this.#options;
    while (!this.#stop.signal.aborted) {
      let pauseMs = pollIntervalMs;
      try {
        // `watch` is the state that the site's last poll stored; `watch` is null if another hub has the site's lease now.
        const watch = await holdWatch(db, this.#siteId, hubId, LEASE_SECONDS);
        if (watch !== null) pauseMs = await this.#poll(watch);
      } catch (error) {
        log.warn("a site could not be watched", { site_id: this.#siteId, error });
      }
      await this.#rest(pauseMs);
    }
    await releaseWatch(db, this.#siteId, hubId).catch((error: unknown) =>
      log.debug("a site's lease could not be released; it will expire", { site_id: this.#siteId, error }),
    );
  }

  async #poll(watch: HeldWatch): Promise<number> {
    const { db, log, pollIntervalMs, clientFor } = this.#options;
    this.#woken = false;
    // A changed fencing number of a site's lease means that another hub has polled the site since this hub's last poll. If another hub has polled the
    // site since this hub's last poll, the MAAS events that this hub remembers may be older than the stored cursor, so it forgets them.
    if (watch.fence !== this.#fence) this.#memory = emptyMemory();
    this.#fence = watch.fence;
    try {
      const maas = await clientFor(this.#siteId, this.#stop.signal);
      const deps = { ...this.#options, onSweepEnded: () => this.wake() };
      const polled = await pollSite(deps, this.#siteId, watch, maas, this.#memory);
      if (polled !== "lost") {
        await this.#options.onPolled?.({ siteId: this.#siteId, fence: watch.fence, maas, ...polled });
        if (polled.error !== null) throw polled.error;
      }
      sitePolls.add({ result: "ok" });
      if (watch.consecutiveFailures > 0)
        log.info("a site answers again", { site_id: this.#siteId, failures: watch.consecutiveFailures });
      return pollIntervalMs;
    } catch (error) {
      if (!(error instanceof MaasError) && !(error instanceof SecretError)) throw error;
      // When the hub stops its polling of a site, it aborts the running poll, and an aborted poll is not an error of the site.
      if (this.#stop.signal.aborted) return 0;
      sitePolls.add({ result: "failed" });
      const failures = await recordFailedPoll(db, this.#siteId, watch.fence, error.code);
      log.warn("a poll of a site failed", { site_id: this.#siteId, code: error.code, failures, error });
      return failurePauseMs(failures, pollIntervalMs, Math.random());
    }
  }

  async #rest(pauseMs: number): Promise<void> {
    if (this.#woken || this.#stop.signal.aborted) return;
    const resting = new AbortController();
    this.#rung = () => resting.abort();
    await pause(Math.max(10, pauseMs), resting.signal);
    this.#rung = null;
  }
}
