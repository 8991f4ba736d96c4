/** The hub supports the present protocol version and the version before it, so operators can upgrade hub and agents in any order. */
export const PROTOCOL_VERSION = 1;
export const OLDEST_PROTOCOL_VERSION = 1;

export const isSupportedProtocol = (version: number): boolean =>
  Number.isInteger(version) && version >= OLDEST_PROTOCOL_VERSION && version <= PROTOCOL_VERSION;

/** The largest WebSocket frame, and the largest body from a host with a certificate, in bytes. The largest inventory of an agent has 0.43 MiB. */
export const MAX_FRAME_BYTES = 512 * 1024;

/** `retry` says what the agent does after the hub has closed the agent's channel with the close code. */
export const CLOSE_CODES = {
  bad_frame: { code: 4000, retry: "backoff" },
  superseded: { code: 4001, retry: "never_this_socket" },
  identity_revoked: { code: 4003, retry: "stop" },
  certificate_expired: { code: 4004, retry: "backoff" },
  certificate_replaced: { code: 4005, retry: "backoff" },
  protocol_unsupported: { code: 4006, retry: "slow" },
  hello_timeout: { code: 4008, retry: "backoff" },
  hub_stopping: { code: 4012, retry: "backoff" },
  /**
   * The host exceeded its rate limit for too long, so the hub closed its channel. An agent that does not know the close code `rate_limited`
   * reconnects soon, and the hub's rate limit for sessions then slows it down.
   */
  rate_limited: { code: 4029, retry: "slow" },
} as const satisfies Record<string, { code: number; retry: "backoff" | "slow" | "stop" | "never_this_socket" }>;
export type CloseReason = keyof typeof CLOSE_CODES;

/**
 * The close code that an agent uses if it reconnects at once, for example with a renewed certificate. A close with the code `AGENT_COMES_BACK` does
 * not change the condition `agent.connected`.
 */
export const AGENT_COMES_BACK = 4013;
