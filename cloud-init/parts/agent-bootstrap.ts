import type { UserDataInput } from "../input.ts";
import { partFile, shellPart } from "./part.ts";

export const AGENT_BODY = partFile("agent-bootstrap.sh");

type Agent = Pick<UserDataInput, "hub" | "nodeId" | "generation" | "enrollmentToken">;

const agentConfig = (input: Agent) => ({
  hub_url: input.hub.agentUrl,
  node_id: input.nodeId,
  generation: input.generation,
  enrollment_token_file: "/etc/muster/enrollment-token",
  ca_file: "/etc/muster/ca.pem",
  task_signing_public_key: input.hub.taskSigningPublicKey,
});

/**
 * True if the URL of the agent's package points to the hub's own listener. Only the hub's own origin gets the enrollment token, because another port
 * may belong to another server.
 */
const isHubsPackage = ({ agent, hub }: UserDataInput): boolean =>
  agent.packageUrl !== undefined && new URL(agent.packageUrl).origin === new URL(hub.agentUrl).origin;

/** The values of the script that installs the agent, whether the host downloads the agent's package or not. */
export const agentValues = (input: Agent) => ({
  NODE_ID: input.nodeId,
  GENERATION: input.generation,
  AGENT_CONFIG: JSON.stringify(agentConfig(input), null, 2),
  CA_BUNDLE: input.hub.caBundlePem.trimEnd(),
  ENROLLMENT_TOKEN: input.enrollmentToken,
});

/** Renders the script that installs the agent at the first boot and gives it the data for its enrollment (lifecycle 9). */
export const agentBootstrap = shellPart({
  name: "20-agent-bootstrap.sh",
  owner: "muster",
  body: AGENT_BODY,
  values: (input) => ({
    ...agentValues(input),
    PACKAGE_URL: input.agent.packageUrl ?? "",
    PACKAGE_SHA256: input.agent.packageSha256 ?? "",
    PACKAGE_FROM_HUB: isHubsPackage(input),
  }),
});
