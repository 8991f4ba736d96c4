/** The clock of the simulated Vault, which only a test moves. The work of a fired timer ends before the clock's next timer fires. */
export class VaultClock {
  #now = Date.parse("2026-01-01T00:00:00Z");
  readonly #timers = new Map<number, { readonly at: number; readonly run: () => void }>();
  #next = 0;

  now(): number {
    return this.#now;
  }

  /** The timer function for a secret store under test, so that the store and the simulated Vault use one clock. */
  readonly timer = (ms: number, run: () => void): (() => void) => {
    const id = this.#next++;
    this.#timers.set(id, { at: this.#now + ms, run });
    return () => this.#timers.delete(id);
  };

  get pending(): number {
    return this.#timers.size;
  }

  /** Moves the clock to the next timer and fires the timer, or returns false if no timer waits. */
  fire(): boolean {
    const [first] = [...this.#timers].sort(([, a], [, b]) => a.at - b.at);
    if (first === undefined) return false;
    const [id, { at, run }] = first;
    this.#timers.delete(id);
    this.#now = Math.max(this.#now, at);
    run();
    return true;
  }

  /** Moves the clock without firing a timer, as if the process had been suspended. */
  advance(seconds: number): void {
    this.#now += seconds * 1000;
  }
}
