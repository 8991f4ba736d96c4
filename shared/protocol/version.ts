/**
 * The version of the protocol between hub and agent. The hub supports the present protocol version and the version before, so hub and agents can be
 * upgraded in any order.
 */
export const PROTOCOL_VERSION = 1;
export const OLDEST_PROTOCOL_VERSION = 1;

export const isSupportedProtocol = (version: number): boolean =>
  Number.isInteger(version) && version >= OLDEST_PROTOCOL_VERSION && version <= PROTOCOL_VERSION;

/** The largest WebSocket frame, and the largest body from a host with a certificate, in bytes. The largest inventory of an agent has 0.43 MiB. */
export const MAX_FRAME_BYTES = 512 * 1024;

/**
 * The WebSocket close codes of the channel between hub and agent. The member `retry` of a close code says what the agent does after its channel was
 * closed with the code.
 */
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
   * reconnects soon, and the rate limit for sessions slows the agent down.
   */
  rate_limited: { code: 4029, retry: "slow" },
} as const satisfies Record<string, { code: number; retry: "backoff" | "slow" | "stop" | "never_this_socket" }>;
export type CloseReason = keyof typeof CLOSE_CODES;

/**
 * The close code of an agent that reconnects at once, for example with a renewed certificate. A close with the code `AGENT_COMES_BACK` does not
 * change the condition `agent.connected`.
 */
export const AGENT_COMES_BACK = 4013;
