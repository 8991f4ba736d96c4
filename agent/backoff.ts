const FIRST_WINDOW_MS = 1_000;
const LONGEST_WINDOW_MS = 60_000;

/** The window of a reconnect attempt. The window doubles with each failure since the last welcome, up to a minute. */
export const windowMs = (failures: number): number =>
  Math.min(LONGEST_WINDOW_MS, FIRST_WINDOW_MS * 2 ** Math.min(failures, 6));

/**
 * The time within the window at which the agent tries to reconnect. After a failure the agent also waits for the rest of the window. Without that
 * wait, the sum of random delays would make many hosts reconnect at the same time. The argument `random` is in [0, 1).
 */
export function attemptPlan(failures: number, random: number): { beforeMs: number; afterMs: number } {
  const window = windowMs(failures);
  const beforeMs = Math.floor(window * random);
  return { beforeMs, afterMs: window - beforeMs };
}

/**
 * The pause after a good connection has ended, before the first window. A hub that restarts loses all its hosts at once, so their windows
 * would start together. The pause is at most half a time to live, so no host counts as offline because of it.
 */
export const edgeJitterMs = (ttlMs: number, random: number): number =>
  Math.floor(Math.min(LONGEST_WINDOW_MS, ttlMs / 2) * random);

/** The pause before the next heartbeat: 0.3 to 0.6 of the time to live. */
export const heartbeatPauseMs = (ttlMs: number, random: number): number => Math.round(ttlMs * (0.3 + 0.3 * random));

/** When to renew a certificate: at 45 to 55 percent of its life. */
export function renewAt(notBefore: Date, notAfter: Date, random: number): Date {
  const life = notAfter.getTime() - notBefore.getTime();
  return new Date(notBefore.getTime() + life * (0.45 + 0.1 * random));
}
