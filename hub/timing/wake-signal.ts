import { pause } from "./pause.ts";

/** A wake-up signal that other code may raise even before anything waits for it. A wake-up signal serves one waiter at a time. */
export class WakeSignal {
  #raised = false;
  #asleep: AbortController | null = null;

  raise(): void {
    this.#raised = true;
    this.#asleep?.abort();
  }

  /** True if the next call of `wait` resolves at once. */
  get raised(): boolean {
    return this.#raised;
  }

  /** Resolves when the wake-up signal has been raised since the last call of `wait`, or after `timeoutMs` milliseconds. */
  async wait(timeoutMs: number): Promise<void> {
    if (!this.#raised) {
      this.#asleep = new AbortController();
      await pause(timeoutMs, this.#asleep.signal);
      this.#asleep = null;
    }
    this.#raised = false;
  }
}
