import { MAX_FRAME_BYTES } from "../../shared/protocol/version.ts";

/**
 * All limits on the cost that one host, one address or one operator's token may cause at a hub. A healthy agent stays far below each limit in
 * `hub/gateway/budgets.ts`, even on a bad network or at a first boot. A thousand healthy agents behind one NAT also stay below the limits that the
 * hub sets for one address. Each hub counts only the requests to itself, in memory. The limits on the number of database rows that the hub keeps are
 * in `hub/db/kept.ts`.
 */

/**
 * The largest body that each route of the agent listener accepts, in bytes. A real enrollment request has 1.3 KB, or 6.4 KB with 256 NICs. An
 * enrollment request with every field at its limit has 14.5 KB. An agent's hello message with a full journal of tasks has 93 KB. Routes of the agent
 * listener that `BODY_BYTES` does not list accept no body.
 */
export const BODY_BYTES = {
  enroll: 16 * 1024,
  renewal: 16 * 1024,
  session: 128 * 1024,
  frames: MAX_FRAME_BYTES,
  /** cloud-init's report contains all public keys of the host, which are a few kilobytes. */
  cloudInitReport: 64 * 1024,
} as const;

/** A budget of `burst` requests at once, and of `perMinute` requests per minute afterwards. */
export interface Rate {
  readonly burst: number;
  readonly perMinute: number;
}

/** The budgets of one node, for frames over WebSocket and long poll together. */
export const NODE_RATES = {
  /**
   * An agent opens one session for each connection. An agent whose connections all end right after they open makes about twenty attempts a minute,
   * and fewer after each failure.
   */
  session: { burst: 60, perMinute: 20 },
  /**
   * The budget `enrollment` counts only enrollment requests with a known token. An agent whose enrollment token has expired repeats its request after
   * 6 s, and later once a minute.
   */
  enrollment: { burst: 20, perMinute: 4 },
  /**
   * The budget `download` counts downloads of the bootstrap script and the agent's package with the node's token. A host's first boot makes each
   * download once, and repeats a download that breaks off.
   */
  download: { burst: 20, perMinute: 4 },
  /** An agent renews its certificate twice a day, and retries once a minute after a failure. */
  renewal: { burst: 10, perMinute: 1 },
  /**
   * The budget `poll` counts the HTTP requests of a long-poll agent. A long-poll agent sends each frame as a request of its own, in addition to its
   * polls.
   */
  poll: { burst: 600, perMinute: 600 },
  bytes: { burst: 4 * 1024 * 1024, perMinute: 4 * 1024 * 1024 },
  /** At the shortest heartbeat TTL in practice, 1 s, an agent sends at most 200 heartbeats a minute. */
  heartbeat: { burst: 1_000, perMinute: 600 },
  /**
   * An agent sends a readiness frame every two minutes, and when a condition has changed (checked every 2 s). The agent repeats a readiness frame
   * with each heartbeat until the hub acknowledges the frame.
   */
  readiness: { burst: 120, perMinute: 60 },
  /** An agent sends its inventory once for each connection. */
  inventory: { burst: 60, perMinute: 20 },
  progress: { burst: 120, perMinute: 60 },
  /**
   * The budget `task` counts an agent's acknowledgements of tasks and of the hub's keys, and its results of tasks. An agent repeats the result of a
   * task with each heartbeat until the hub acknowledges the result.
   */
  task: { burst: 600, perMinute: 300 },
  /**
   * The budget `cloudInit` counts reports of cloud-init with the node's report token. During one boot of a host, cloud-init sends about eighty
   * reports.
   */
  cloudInit: { burst: 400, perMinute: 120 },
} as const satisfies Record<string, Rate>;
export type NodeKind = keyof typeof NODE_RATES;

/** The budgets of one address: an IPv4 address, or the /64 of an IPv6 address. A thousand hosts may share one address, for example behind a NAT. */
export const ADDRESS_RATES = {
  /** The budget `connection` counts new connections of one address, before TLS begins. */
  connection: { burst: 5_000, perMinute: 6_000 },
  /**
   * The budget `refusal` counts requests without a valid token or certificate. A host whose enrollment token has expired repeats its request after
   * six seconds, and later once a minute.
   */
  refusal: { burst: 5_000, perMinute: 3_000 },
  /**
   * The budget `open` counts requests that need neither token nor certificate: for the listener's health, or for the chain of statements about the
   * hub's keys. A host that was off during a rotation of the hub's keys reads the chain of signed statements about these keys once.
   */
  open: { burst: 3_000, perMinute: 3_000 },
} as const satisfies Record<string, Rate>;
export type AddressKind = keyof typeof ADDRESS_RATES;

/**
 * The budgets of one token of the admin API at one hub. A browser that shows all parts of the hub's web page sends 21 requests in two seconds. One
 * token can serve ten browsers with the hub's web page, a script that onboards hosts, and a client that lists the fleet. A script out of control uses
 * up only the budget of its own token.
 */
export const TOKEN_RATES = {
  request: { burst: 1_000, perMinute: 9_000 },
  /**
   * Each change through the admin API is a transaction with an audit row. The hub charges each change through the admin API to both of the token's
   * budgets, `write` and `request`.
   */
  write: { burst: 500, perMinute: 3_000 },
} as const satisfies Record<string, Rate>;
export type TokenKind = keyof typeof TOKEN_RATES;

export const LIMITS = {
  /**
   * The largest number of connections that have not yet carried an authenticated request, for one client address and in all. If a hub has more
   * connections without an authenticated request than the limit, the hub closes the oldest of these connections.
   */
  unprovenPerAddress: 2_000,
  unprovenInAll: 6_000,
  /**
   * In each interval of 10 ms the hub begins at most 4 TLS handshakes for one address, and 16 in all. In one second the hub begins at most 1,600 TLS
   * handshakes. A TLS handshake takes half a millisecond of the hub's event loop. If more TLS handshakes wait than one interval allows, the rest wait
   * for the next interval.
   */
  handshakeTurnMs: 10,
  handshakesPerAddress: 4,
  handshakesInAll: 16,
  /** The milliseconds for which a node must be over its budget without a pause before the hub marks the node as noisy and closes its connection. */
  noisyAfterMs: 30_000,
  /** The milliseconds for which a noisy node, a node over its budgets, must keep to its budgets before the hub no longer counts it as noisy. */
  calmAfterMs: 300_000,
  /** If more than `waitingFrames` frames or `waitingBytes` bytes of an agent wait for the hub, the hub stops reading from the agent's socket. */
  waitingFrames: 64,
  waitingBytes: 1024 * 1024,
} as const;

export interface Bucket {
  /** A negative number of tokens means that the sender of frames or requests took more tokens than its token bucket had, so the sender must wait. */
  readonly tokens: number;
  /** The time when the bucket's number of tokens was computed, in milliseconds of a monotonic clock. */
  readonly at: number;
}

const filled = ({ burst, perMinute }: Rate, bucket: Bucket | undefined, now: number): number =>
  bucket === undefined ? burst : Math.min(burst, bucket.tokens + ((now - bucket.at) * perMinute) / 60_000);

const untilThere = ({ perMinute }: Rate, missing: number): number => Math.ceil((missing * 60_000) / perMinute);

/**
 * Takes a frame's cost from its sender's token bucket, even if the bucket has too few tokens. `charge` returns how long the hub waits until it
 * accepts the sender's next frame.
 */
export function charge(
  rate: Rate,
  bucket: Bucket | undefined,
  now: number,
  cost: number,
): { bucket: Bucket; waitMs: number } {
  const tokens = Math.max(-rate.burst, filled(rate, bucket, now) - cost);
  return { bucket: { tokens, at: now }, waitMs: tokens >= 0 ? 0 : untilThere(rate, -tokens) };
}

/**
 * Takes one token from the sender's token bucket. If the sender's token bucket is empty, `ask` takes nothing and returns the time until the bucket
 * has a token.
 */
export function ask(rate: Rate, bucket: Bucket | undefined, now: number): { bucket: Bucket; waitMs: number } {
  const tokens = filled(rate, bucket, now);
  return tokens >= 1
    ? { bucket: { tokens: tokens - 1, at: now }, waitMs: 0 }
    : { bucket: { tokens, at: now }, waitMs: untilThere(rate, 1 - tokens) };
}

/** True for a full token bucket, which the hub need not keep, because a new bucket is also full. */
export const isFull = (rate: Rate, bucket: Bucket, now: number): boolean => filled(rate, bucket, now) >= rate.burst;
