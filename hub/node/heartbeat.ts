/** How many heartbeats one hub accepts a second, over all its agents; with more agents the time to live grows. */
const HEARTBEATS_PER_SECOND = 50;

/** How long an agent may be silent, in milliseconds; spread over [interval, 2 x interval) so that the fleet does not send in step. */
export function heartbeatTtlMs(agents: number, minimumMs: number, random: number): number {
  const interval = Math.max(minimumMs, (agents / HEARTBEATS_PER_SECOND) * 1000);
  return Math.round(interval * (1 + random));
}
