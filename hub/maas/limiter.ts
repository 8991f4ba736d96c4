/** For each site, the limiter limits simultaneous requests, and has a lower limit for requests that wait for a BMC (decisions M13, P13). */
export interface Limits {
  readonly total: number;
  readonly slow: number;
}
const SITE_LIMITS: Limits = { total: 8, slow: 4 };

interface Waiting {
  readonly slow: boolean;
  readonly start: () => void;
}

/**
 * The limiter serves the requests to one site in the order of their arrival. A slow request to MAAS that waits for its turn in the limiter does not
 * block the quick requests that arrived after it.
 */
export class RequestLimiter {
  readonly #limits: Limits;
  readonly #waiting: Waiting[] = [];
  #running = 0;
  #slow = 0;
  constructor(limits: Limits = SITE_LIMITS) {
    this.#limits = limits;
  }

  async run<T>(slow: boolean, signal: AbortSignal | undefined, task: () => Promise<T>): Promise<T> {
    await this.#place(slow, signal);
    try {
      return await task();
    } finally {
      this.#running -= 1;
      if (slow) this.#slow -= 1;
      this.#next();
    }
  }

  #place(slow: boolean, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        const place = this.#waiting.indexOf(waiting);
        if (place >= 0) this.#waiting.splice(place, 1);
        reject(signal?.reason);
      };
      const waiting: Waiting = {
        slow,
        start: () => {
          signal?.removeEventListener("abort", onAbort);
          this.#running += 1;
          if (slow) this.#slow += 1;
          resolve();
        },
      };
      if (signal?.aborted) return reject(signal.reason);
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#waiting.push(waiting);
      this.#next();
    });
  }

  #next(): void {
    while (this.#running < this.#limits.total) {
      const place = this.#waiting.findIndex((waiting) => !waiting.slow || this.#slow < this.#limits.slow);
      if (place < 0) return;
      this.#waiting.splice(place, 1)[0]?.start();
    }
  }
}
