/**
 * The number of heartbeats per second that one hub accepts from all its agents together. The more agents a hub has, the longer is each agent's
 * heartbeat interval.
 */
const HEARTBEATS_PER_SECOND = 50;

/**
 * Returns how many milliseconds one agent may be silent. The heartbeat times of all agents are spread over [interval, 2 x interval), so that agents
 * do not all send at the same time.
 */
export function heartbeatTtlMs(agents: number, minimumMs: number, random: number): number {
  const interval = Math.max(minimumMs, (agents / HEARTBEATS_PER_SECOND) * 1000);
  return Math.round(interval * (1 + random));
}
