import type { NodeId } from "../../shared/ids.ts";
import { HostFolder } from "../fakes/hub/host-folder.ts";
import { type Child, startChild } from "./child.ts";
import type { GatewayRig } from "./gateway-rig.ts";

/** What a host's first boot tells the host about its hub. */
export interface HubOfHost {
  readonly url: string;
  readonly caPem: string;
  readonly orderKey: string;
}

export const hubOf = (rig: GatewayRig): HubOfHost => ({
  url: `https://127.0.0.1:${rig.listener.port}`,
  caPem: rig.ca.caPem,
  orderKey: rig.signer.publicKey,
});

/**
 * Writes the agent's files that a host's first boot would write. Without a `token`, the agent's files are those of a host whose agent has already
 * enrolled.
 */
export function prepareHost(
  host: HostFolder,
  hub: HubOfHost,
  about: { readonly nodeId: NodeId; readonly generation?: number; readonly token?: string },
): void {
  host.tool("systemctl");
  host.write("etc/muster/ca.pem", hub.caPem);
  if (about.token !== undefined) host.write("etc/muster/enrollment-token", `${about.token}\n`, 0o600);
  const config = {
    hub_url: hub.url,
    node_id: about.nodeId,
    generation: about.generation ?? 1,
    enrollment_token_file: "/etc/muster/enrollment-token",
    ca_file: "/etc/muster/ca.pem",
    task_signing_public_key: hub.orderKey,
  };
  host.write("etc/muster/agent.json", JSON.stringify(config), 0o600);
}

export class AgentHosts {
  readonly #hosts: HostFolder[] = [];
  readonly #agents: Child[] = [];

  add(): HostFolder {
    const host = new HostFolder();
    this.#hosts.push(host);
    return host;
  }

  start(host: HostFolder, env: Readonly<Record<string, string>> = {}): Child {
    const agent = startChild({
      name: "agent",
      script: "agent/main.ts",
      env: { MUSTER_ROOT: host.root, ...env },
      logFile: host.path("agent.log"),
    });
    this.#agents.push(agent);
    return agent;
  }

  async end(): Promise<void> {
    await Promise.all(this.#agents.map((agent) => agent.stop()));
    for (const host of this.#hosts) host.remove();
  }
}
