import type { NodeId } from "../../shared/ids.ts";
import type { HostFolder } from "../fakes/hub/host-folder.ts";
import { type Child, startChild } from "./child.ts";
import type { GatewayRig } from "./gateway-rig.ts";

/** Starts the real agent in a host's folder, with what first boot lays there for the node to enroll at the rig's hub. */
export async function startEnrollingAgent(
  rig: GatewayRig,
  host: HostFolder,
  nodeId: NodeId,
  env: Record<string, string> = {},
): Promise<Child> {
  host.tool("systemctl");
  host.write("etc/muster/ca.pem", rig.ca.caPem);
  host.write("etc/muster/enrollment-token", await rig.issueToken(nodeId), 0o600);
  const config = {
    hub_url: `https://127.0.0.1:${rig.listener.port}`,
    node_id: nodeId,
    generation: 1,
    enrollment_token_file: "/etc/muster/enrollment-token",
    ca_file: "/etc/muster/ca.pem",
    task_signing_public_key: rig.signer.publicKey,
  };
  host.write("etc/muster/agent.json", JSON.stringify(config), 0o600);
  return startChild({
    name: "agent",
    script: "agent/main.ts",
    env: { MUSTER_ROOT: host.root, ...env },
    logFile: host.path("agent.log"),
  });
}
