import { Away, Refused } from "../errors.ts";
import type { Io } from "../io.ts";
import { plain } from "../output/plain.ts";

/** The time in milliseconds between two attempts to read the state while the hub does not answer. */
const AGAIN_MS = 1_000;

/**
 * Reads the state of objects repeatedly, for commands such as `muster wait` and `muster watch`. If the hub does not answer for a while, for example
 * during an update, the command goes on and tries again.
 */
export class Readings {
  readonly #io: Io;
  /** True once the hub has answered. If no hub has answered at the address so far, the address is probably a mistake. */
  #answered: boolean;
  #away = false;

  constructor(io: Io, answered: boolean) {
    this.#io = io;
    this.#answered = answered;
  }

  /** Waits for all readings of a round. Returns null if the command should read again, because the hub or a proxy before it does not answer now. */
  async all<T>(readings: readonly Promise<T>[]): Promise<readonly T[] | null> {
    const ends = await Promise.allSettled(readings);
    const faults = ends.flatMap((end) => (end.status === "rejected" ? [end.reason as unknown] : []));
    const last = faults.find((fault) => !mayPass(fault));
    if (last !== undefined) throw last;
    const [fault] = faults;
    if (fault === undefined) {
      this.#answered = true;
      this.#away = false;
      return ends.flatMap((end) => (end.status === "fulfilled" ? [end.value] : []));
    }
    if (!this.#answered && fault instanceof Away) throw fault;
    if (!this.#away)
      this.#io.err(plain(`Trying again, because a reading failed: ${String((fault as Error).message).trim()}\n`));
    this.#away = true;
    return null;
  }

  /** The longest time until the next reading. */
  pauseMs(atMostMs: number): number {
    return this.#away ? Math.min(atMostMs, AGAIN_MS) : atMostMs;
  }
}

/** True for a failure that may pass by itself, for example because the hub is away, and that is not the fault of the request. */
function mayPass(error: unknown): boolean {
  if (error instanceof Refused) return [502, 503, 504].includes(error.httpStatus ?? 0);
  // The body of an answer ended early, or did not end in time. A programming mistake is a TypeError too, but its error has no `cause`.
  const cut = error instanceof TypeError && error.cause !== undefined;
  return error instanceof Away || cut || (error instanceof Error && error.name === "TimeoutError");
}
