const FIRST_WINDOW_MS = 1_000;
const LONGEST_WINDOW_MS = 60_000;

/**
 * The window, in milliseconds, within which the agent makes its next reconnect attempt. The window of a reconnect attempt doubles with each failure
 * since the last welcome frame, up to a minute.
 */
export const windowMs = (failures: number): number =>
  Math.min(LONGEST_WINDOW_MS, FIRST_WINDOW_MS * 2 ** Math.min(failures, 6));

/**
 * Returns how long the agent waits before a reconnect attempt, and how long it waits after the attempt if the attempt fails. The attempt comes at a
 * random time, and both waits together are as long as `windowMs`. Without the wait after a failed attempt, many agents would add up random delays and
 * reconnect to the hub at the same time. The argument `random` is a number in [0, 1).
 */
export function attemptPlan(failures: number, random: number): { beforeMs: number; afterMs: number } {
  const window = windowMs(failures);
  const beforeMs = Math.floor(window * random);
  return { beforeMs, afterMs: window - beforeMs };
}

/**
 * Returns how long the agent pauses when a connection that the hub had welcomed ends. After the pause, the window of the agent's first reconnect
 * attempt begins. A hub that restarts loses the connections of all its hosts at once. Without a random pause, the hosts' reconnect windows would
 * start together. The pause before a reconnect is at most half of the heartbeat's time to live, so no host counts as offline because of the pause.
 */
export const edgeJitterMs = (ttlMs: number, random: number): number =>
  Math.floor(Math.min(LONGEST_WINDOW_MS, ttlMs / 2) * random);

/** The pause before the next heartbeat: 0.3 to 0.6 of the time to live that the hub sets for heartbeats. */
export const heartbeatPauseMs = (ttlMs: number, random: number): number => Math.round(ttlMs * (0.3 + 0.3 * random));

/** When the agent renews its certificate: at 45 to 55 percent of the certificate's life. */
export function renewAt(notBefore: Date, notAfter: Date, random: number): Date {
  const life = notAfter.getTime() - notBefore.getTime();
  return new Date(notBefore.getTime() + life * (0.45 + 0.1 * random));
}
