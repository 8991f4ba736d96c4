import { counter, upTo } from "./family.ts";

export const agentConnections = counter({
  name: "muster_agent_connections_total",
  help: "Sessions that agents opened, by channel; after says whether the node's agent was connected before with the same boot of its host (reconnect), with another boot (reboot), or never (first).",
  labels: { channel: ["websocket", "long_poll"], after: ["first", "reconnect", "reboot"] },
});

export const agentDisconnections = counter({
  name: "muster_agent_disconnections_total",
  help: "Sessions of agents that ended at this hub, by who ended them: the hub by a close code of its own, the agent, or the network.",
  labels: { because: ["hub", "agent", "network"] },
});

export const agentHandshakes = counter({
  name: "muster_agent_handshakes_total",
  help: "TLS handshakes at the agent listener, by outcome.",
  labels: { outcome: ["completed", "handshake_failed", "certificate_untrusted", "certificate_not_valid_now"] },
});

export const agentRefusals = counter({
  name: "muster_agent_refusals_total",
  help: "Requests to the agent listener that the hub refused, by the code of the refusal.",
  labels: { code: upTo(48) },
});
