const FIRST_WINDOW_MS = 1_000;
const LONGEST_WINDOW_MS = 60_000;

/** Window of a reconnect attempt: doubles with each failure since the last welcome, a minute at most (peers: arrivals stay uniform). */
export const windowMs = (failures: number): number =>
  Math.min(LONGEST_WINDOW_MS, FIRST_WINDOW_MS * 2 ** Math.min(failures, 6));

/**
 * When in its window an attempt is made. After a failure the agent also waits for the rest of the window, because a sum of jitters would bunch the fleet.
 * `random` in [0, 1).
 */
export function attemptPlan(failures: number, random: number): { beforeMs: number; afterMs: number } {
  const window = windowMs(failures);
  const beforeMs = Math.floor(window * random);
  return { beforeMs, afterMs: window - beforeMs };
}

/**
 * Pause after a good connection has ended, before the first window. A hub that restarts loses all its hosts at once, and all their windows
 * start again. The pause is up to half a time to live, which grows with the fleet, so that no host counts as offline by then.
 */
export const edgeJitterMs = (ttlMs: number, random: number): number =>
  Math.floor(Math.min(LONGEST_WINDOW_MS, ttlMs / 2) * random);

/** Pause before the next heartbeat: between 0.3 and 0.6 of the time to live, so that two may be lost. */
export const heartbeatPauseMs = (ttlMs: number, random: number): number => Math.round(ttlMs * (0.3 + 0.3 * random));

/** When to renew a certificate: at half its life, give or take a tenth of it. */
export function renewAt(notBefore: Date, notAfter: Date, random: number): Date {
  const life = notAfter.getTime() - notBefore.getTime();
  return new Date(notBefore.getTime() + life * (0.45 + 0.1 * random));
}
