/** How many heartbeats one hub accepts per second from all its agents. The more agents a hub has, the longer is the heartbeat interval. */
const HEARTBEATS_PER_SECOND = 50;

/**
 * The heartbeat time of one agent in milliseconds: how long the agent may be silent. The heartbeat times of all agents are spread over [interval, 2 x
 * interval), so that agents do not all send at the same time.
 */
export function heartbeatTtlMs(agents: number, minimumMs: number, random: number): number {
  const interval = Math.max(minimumMs, (agents / HEARTBEATS_PER_SECOND) * 1000);
  return Math.round(interval * (1 + random));
}
