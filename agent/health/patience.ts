import type { Attempt, AttemptOptions } from "../system/attempt.ts";
import type { System } from "../system/system.ts";

/**
 * A program that waits in a hanging driver or disk may stay until the host reboots, so the agent starts another program there only after six hours.
 */
export const AFTER_HANG_MS = 6 * 60 * 60_000;

/** After a disk or a driver has hung, keeps each check from starting one more program on it. */
export class PatientTools {
  readonly #hung = new Map<string, { readonly ran: Attempt; readonly at: number }>();

  /** Runs a tool on the named part of the host, or returns the result of an earlier tool that hung on this part less than six hours ago. */
  async attempt(
    system: System,
    part: string,
    [tool, ...args]: readonly [string, ...string[]],
    times: AttemptOptions,
  ): Promise<Attempt> {
    const before = this.#hung.get(part);
    if (before !== undefined && performance.now() - before.at < AFTER_HANG_MS) return before.ran;
    const ran = await system.attempt(tool, args, times);
    if (ran.kind === "hung") this.#hung.set(part, { ran, at: performance.now() });
    else this.#hung.delete(part);
    return ran;
  }
}
