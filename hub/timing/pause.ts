import { setTimeout as sleep } from "node:timers/promises";

/** Sleeps for `ms`, or until the signal is aborted: that is an end like the other, and no error. */
export const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  sleep(ms, undefined, { signal }).catch(() => undefined);

/** What the work gives, or null once it has taken `ms`; the work then goes on unheard. */
export async function within<T>(ms: number, work: Promise<T>): Promise<T | null> {
  const patience = new AbortController();
  try {
    return await Promise.race([work, pause(ms, patience.signal).then(() => null)]);
  } finally {
    patience.abort();
  }
}
