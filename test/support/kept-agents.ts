import { afterEach } from "vitest";
import type { GatewayRig } from "./gateway-rig.ts";
import { SocketAgent } from "./socket-agent.ts";

type AfterRig<F> = F extends (rig: GatewayRig, ...rest: infer R) => unknown ? R : never;

/** Connects simulated agents to a hub, and disconnects them after each test. */
export function keptAgents(rig: () => GatewayRig) {
  const agents: SocketAgent[] = [];
  afterEach(() => {
    for (const agent of agents.splice(0)) agent.cut();
  });
  const kept = async (opening: Promise<SocketAgent>): Promise<SocketAgent> => {
    const agent = await opening;
    agents.push(agent);
    return agent;
  };
  return {
    connect: (...args: AfterRig<typeof SocketAgent.connect>) => kept(SocketAgent.connect(rig(), ...args)),
    open: (...args: AfterRig<typeof SocketAgent.open>) => kept(SocketAgent.open(rig(), ...args)),
  };
}
