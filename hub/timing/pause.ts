import { setTimeout as sleep } from "node:timers/promises";

/** Waits for `ms` milliseconds, or until the signal is aborted. The abort of a pause is not an error. */
export const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  sleep(ms, undefined, { signal }).catch(() => undefined);

/**
 * Returns the result of the work, or null if the work takes longer than `ms` milliseconds. Work that takes longer than `ms` continues, but nobody
 * reads its result.
 */
export async function within<T>(ms: number, work: Promise<T>): Promise<T | null> {
  const patience = new AbortController();
  try {
    return await Promise.race([work, pause(ms, patience.signal).then(() => null)]);
  } finally {
    patience.abort();
  }
}
