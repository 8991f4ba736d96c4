const FIRST_WINDOW_MS = 1_000;
const LONGEST_WINDOW_MS = 60_000;

/**
 * The window, in milliseconds, within which the agent makes its next attempt to connect. The window for the next attempt to connect doubles with each
 * failed attempt since the last welcome frame, up to a minute.
 */
export const windowMs = (failures: number): number =>
  Math.min(LONGEST_WINDOW_MS, FIRST_WINDOW_MS * 2 ** Math.min(failures, 6));

/**
 * The agent waits both before an attempt to connect and after a failed attempt. Each attempt to connect to the hub comes at a random time within a
 * window of `windowMs` (`random` is in [0, 1)), so the waits before and after the attempt together last `windowMs`. Without the wait after a failed
 * attempt to connect, each agent would add up random delays, and the sums of many agents would gather around one time.
 */
export function attemptPlan(failures: number, random: number): { beforeMs: number; afterMs: number } {
  const window = windowMs(failures);
  const beforeMs = Math.floor(window * random);
  return { beforeMs, afterMs: window - beforeMs };
}

/**
 * After a connection that the hub had welcomed has ended, the agent pauses before it plans another attempt to connect. A restart of a hub ends the
 * connections of all its hosts at once. Without a random pause, all agents of a restarted hub would start their reconnect windows together. The pause
 * before a reconnect is at most half of the heartbeats' time to live, so it makes no host count as offline.
 */
export const edgeJitterMs = (ttlMs: number, random: number): number =>
  Math.floor(Math.min(LONGEST_WINDOW_MS, ttlMs / 2) * random);

/** The pause before the next heartbeat: 0.3 to 0.6 of the heartbeats' time to live, which the hub sets. */
export const heartbeatPauseMs = (ttlMs: number, random: number): number => Math.round(ttlMs * (0.3 + 0.3 * random));

/** The agent renews its certificate when 45 to 55 percent of the certificate's life are over. */
export function renewAt(notBefore: Date, notAfter: Date, random: number): Date {
  const life = notAfter.getTime() - notBefore.getTime();
  return new Date(notBefore.getTime() + life * (0.45 + 0.1 * random));
}
