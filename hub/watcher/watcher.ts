import type { SiteId } from "../../shared/ids.ts";
import { activeSiteIds, holdWatch, recordFailedLook, releaseWatch } from "../db/queries/maas-site-watches.ts";
import type { MaasSiteWatch } from "../db/schema/index.ts";
import type { Db, InTx } from "../db/tx.ts";
import type { Log } from "../log.ts";
import { MaasError, type MaasPort } from "../maas/port.ts";
import { SecretError } from "../secrets/port.ts";
import { emptyMemory, lookAtSite } from "./look.ts";
import { failurePauseMs, wakeIsDue } from "./plan.ts";

export interface WatcherOptions {
  readonly db: Db;
  readonly inTx: InTx;
  readonly hubId: string;
  /** Reads the site's token afresh. The signal ends its requests when the watcher closes. */
  readonly clientFor: (siteId: SiteId, signal: AbortSignal) => Promise<MaasPort>;
  readonly log: Log;
  readonly pollIntervalMs: number;
  readonly sweepIntervalMs: number;
}
export interface Watcher {
  /** Looks at a site now, if this hub watches it. */
  wake(siteId: SiteId): void;
  close(): Promise<void>;
}

/** After a hub's death another one watches its sites in about this time. */
const LEASE_SECONDS = 5;
const SITES_EVERY_MS = 2_000;
/** A lease must be renewed well before it lapses, however seldom the site is polled. */
const LONGEST_PAUSE_MS = 2_000;

/** One loop a site, independent of each other: a site that is down never slows another (lifecycle 6.3). Over all hubs one loop looks. */
export function startWatcher(options: WatcherOptions): Watcher {
  const stop = new AbortController();
  const loops = new Map<SiteId, SiteLoop>();
  const syncSites = async (): Promise<void> => {
    const active = new Set(await activeSiteIds(options.db));
    for (const siteId of active) if (!loops.has(siteId)) loops.set(siteId, new SiteLoop(options, siteId, stop.signal));
    for (const [siteId, loop] of loops) {
      if (active.has(siteId)) continue;
      loops.delete(siteId);
      await loop.close();
    }
  };
  const keepSites = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      await syncSites().catch((error: unknown) => options.log.warn("the list of sites could not be read", { error }));
      await pause(SITES_EVERY_MS, stop.signal);
    }
  };
  const keeping = keepSites();
  return {
    wake: (siteId) => loops.get(siteId)?.wake(),
    close: async () => {
      stop.abort();
      await keeping;
      await Promise.all([...loops.values()].map((loop) => loop.close()));
    },
  };
}

class SiteLoop {
  readonly #options: WatcherOptions;
  readonly #siteId: SiteId;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  #memory = emptyMemory();
  #nextLookAt = 0;
  /** Somebody asked for a look since the last one began. */
  #woken = false;
  #rung: (() => void) | null = null;

  constructor(options: WatcherOptions, siteId: SiteId, stop: AbortSignal) {
    this.#options = options;
    this.#siteId = siteId;
    stop.addEventListener("abort", () => this.#stop.abort(), { once: true });
    this.#running = this.#run();
  }

  wake(): void {
    this.#woken = true;
    this.#rung?.();
  }

  async close(): Promise<void> {
    this.#stop.abort();
    this.#rung?.();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { db, hubId, log } = this.#options;
    while (!this.#stop.signal.aborted) {
      let pauseMs = LONGEST_PAUSE_MS;
      try {
        const watch = await holdWatch(db, this.#siteId, hubId, LEASE_SECONDS);
        if (watch === null) {
          this.#memory = emptyMemory();
          this.#woken = false;
        } else {
          if (this.#isDue(watch)) await this.#look(watch);
          pauseMs = this.#nextLookAt - performance.now();
        }
      } catch (error) {
        log.warn("a site could not be watched", { site_id: this.#siteId, error });
        this.#nextLookAt = performance.now() + this.#options.pollIntervalMs;
      }
      await this.#rest(pauseMs);
    }
    await releaseWatch(db, this.#siteId, hubId).catch((error: unknown) =>
      log.debug("a site's lease was left to lapse", { site_id: this.#siteId, error }),
    );
  }

  #isDue(watch: MaasSiteWatch): boolean {
    return this.#woken || performance.now() >= this.#nextLookAt || wakeIsDue(watch.wakeRequestedAt, watch.lastErrorAt);
  }

  async #look(watch: MaasSiteWatch): Promise<void> {
    const { db, hubId, log, pollIntervalMs, clientFor } = this.#options;
    this.#woken = false;
    // A look at a large or slow site outlasts the lease, so that is renewed meanwhile. A renewal that fails shows in the fence.
    const renewal = setInterval(
      () => void holdWatch(db, this.#siteId, hubId, LEASE_SECONDS).catch(() => undefined),
      (LEASE_SECONDS * 1000) / 3,
    );
    try {
      const maas = await clientFor(this.#siteId, this.#stop.signal);
      await lookAtSite(this.#options, this.#siteId, watch, maas, this.#memory);
      this.#nextLookAt = performance.now() + pollIntervalMs;
      if (watch.consecutiveFailures > 0)
        log.info("a site answers again", { site_id: this.#siteId, failures: watch.consecutiveFailures });
    } catch (error) {
      if (!(error instanceof MaasError) && !(error instanceof SecretError)) throw error;
      // Closing cuts the look short; that says nothing of the site.
      if (this.#stop.signal.aborted) return;
      const failures = await recordFailedLook(db, this.#siteId, watch.fence, error.code);
      this.#nextLookAt = performance.now() + failurePauseMs(failures, pollIntervalMs, Math.random());
      log.warn("a look at a site failed", { site_id: this.#siteId, code: error.code, failures, error });
    } finally {
      clearInterval(renewal);
    }
  }

  async #rest(pauseMs: number): Promise<void> {
    if (this.#stop.signal.aborted || this.#woken) return;
    const ms = Math.max(10, Math.min(LONGEST_PAUSE_MS, pauseMs));
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#rung = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#rung = null;
  }
}

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
