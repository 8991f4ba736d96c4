/** Time as the test lets it pass. Timers fire in order, each at its own moment, and what they do is over before the next. */
export class VaultClock {
  #now = Date.parse("2026-01-01T00:00:00Z");
  readonly #timers = new Map<number, { readonly at: number; readonly run: () => void }>();
  #next = 0;

  now(): number {
    return this.#now;
  }

  /** A store under test keeps its time by this, so that leases and their renewal agree. */
  readonly timer = (ms: number, run: () => void): (() => void) => {
    const id = this.#next++;
    this.#timers.set(id, { at: this.#now + ms, run });
    return () => this.#timers.delete(id);
  };

  /** Timers that wait. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Lets time pass to the next timer, and fires it; false when there is none. */
  fire(): boolean {
    const [first] = [...this.#timers].sort(([, a], [, b]) => a.at - b.at);
    if (first === undefined) return false;
    const [id, { at, run }] = first;
    this.#timers.delete(id);
    this.#now = Math.max(this.#now, at);
    run();
    return true;
  }

  /** Lets time pass without firing anything, as for a process that stood still. */
  advance(seconds: number): void {
    this.#now += seconds * 1000;
  }
}
