/** Heartbeats that one hub takes a second, over all its agents; above that the time to live grows with the fleet. */
const HEARTBEATS_PER_SECOND = 50;

/** How long an agent may be silent, in milliseconds; spread over [interval, 2 x interval) so that the fleet does not beat in step. */
export function heartbeatTtlMs(agents: number, minimumMs: number, random: number): number {
  const interval = Math.max(minimumMs, (agents / HEARTBEATS_PER_SECOND) * 1000);
  return Math.round(interval * (1 + random));
}
