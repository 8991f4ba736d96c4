import { MAX_FRAME_BYTES } from "../../shared/protocol/version.ts";

/**
 * All limits on the cost that one host, one address or one operator's token may cause at a hub. A healthy agent stays far below each limit in this
 * file. A healthy agent stays below its limits behind one NAT with a thousand other agents, on a network that cuts connections, and during a first
 * boot. Each hub counts only the requests to itself, in memory. The limits of stored rows are in `hub/db/kept.ts`.
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

/** A budget, which allows `burst` requests at once, and `perMinute` requests per minute afterwards. */
export interface Rate {
  readonly burst: number;
  readonly perMinute: number;
}

/** The budgets of one node, for frames over WebSocket and long poll together. */
export const NODE_RATES = {
  /**
   * An agent opens one session for each connection. An agent whose every connection ends right after it opened makes about twenty attempts a
   * minute, and fewer after each failure.
   */
  session: { burst: 60, perMinute: 20 },
  /**
   * The budget `enrollment` counts only enrollment requests with a known token. An agent whose enrollment token has expired repeats its request after
   * 6 s, and later once a minute.
   */
  enrollment: { burst: 20, perMinute: 4 },
  /**
   * Downloads of the bootstrap script and the agent's package with the node's token. A host's first boot makes each download once, and repeats a
   * download that breaks off.
   */
  download: { burst: 20, perMinute: 4 },
  /** An agent renews its certificate twice a day, and retries once a minute after a failure. */
  renewal: { burst: 10, perMinute: 1 },
  /** Requests of the long poll: the agent sends each frame as a request, in addition to the poll itself. */
  poll: { burst: 600, perMinute: 600 },
  bytes: { burst: 4 * 1024 * 1024, perMinute: 4 * 1024 * 1024 },
  /** At the shortest heartbeat interval in practice, 1 s, an agent sends 200 heartbeats a minute. */
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
   * An agent's acknowledgements of tasks and of the hub's keys, and its results of tasks. An agent repeats the result of a task with each heartbeat
   * until the hub acknowledges the result.
   */
  task: { burst: 600, perMinute: 300 },
  /** Reports of cloud-init with the node's report token; one boot of a host sends about eighty reports. */
  cloudInit: { burst: 400, perMinute: 120 },
} as const satisfies Record<string, Rate>;
export type NodeKind = keyof typeof NODE_RATES;

/** The budgets of one address: an IPv4 address, or the /64 of an IPv6 address. A thousand hosts may share one address. */
export const ADDRESS_RATES = {
  /** New connections, counted before TLS begins. */
  connection: { burst: 5_000, perMinute: 6_000 },
  /**
   * Requests without a valid token or certificate. A host whose enrollment token has expired repeats its request after six seconds, and later once a
   * minute.
   */
  refusal: { burst: 5_000, perMinute: 3_000 },
  /**
   * Requests that need neither token nor certificate: the listener's health, and the chain of statements about the hub's keys. A host that was off
   * during a rotation of the hub's keys reads the chain of statements once.
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
   * Each change through the admin API is a transaction with an audit row. The hub charges a change to the budget `write` and to the budget `request`.
   */
  write: { burst: 500, perMinute: 3_000 },
} as const satisfies Record<string, Rate>;
export type TokenKind = keyof typeof TOKEN_RATES;

export const LIMITS = {
  /**
   * The limit of connections that have not proven to come from a host of this hub. A connection's first authenticated request proves that it comes
   * from a host of this hub. When the hub has more connections without an authenticated request than the limit, the hub closes the oldest of these
   * connections.
   */
  unprovenPerAddress: 2_000,
  unprovenInAll: 6_000,
  /**
   * In each interval of 10 ms the hub begins at most 4 TLS handshakes for one address, and 16 in all: 400 and 1,600 a second. A TLS handshake takes
   * half a millisecond. TLS handshakes above the limit of an interval wait for the next interval.
   */
  handshakeTurnMs: 10,
  handshakesPerAddress: 4,
  handshakesInAll: 16,
  /** The time after which the hub marks a node as noisy and closes its connection, if the node is over its budget without a pause. */
  noisyAfterMs: 30_000,
  /** The time for which a noisy node must keep to its budgets until it is no longer noisy. */
  calmAfterMs: 300_000,
  /**
   * The limit of an agent's frames that wait until the hub processes them. If more than `waitingFrames` frames of an agent wait, the hub stops
   * reading from the agent's socket.
   */
  waitingFrames: 64,
  waitingBytes: 1024 * 1024,
} as const;

export interface Bucket {
  /**
   * The number of tokens in the bucket. A negative number of tokens means that the sender took more tokens than the bucket had, so the sender must
   * wait.
   */
  readonly tokens: number;
  /** The time when `tokens` was computed, in milliseconds of a monotonic clock. */
  readonly at: number;
}

const filled = ({ burst, perMinute }: Rate, bucket: Bucket | undefined, now: number): number =>
  bucket === undefined ? burst : Math.min(burst, bucket.tokens + ((now - bucket.at) * perMinute) / 60_000);

const untilThere = ({ perMinute }: Rate, missing: number): number => Math.ceil((missing * 60_000) / perMinute);

/**
 * Takes the frame's cost from the bucket, even if the bucket has too few tokens. Returns how long the hub waits until it accepts the sender's next
 * frame.
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
 * Takes one token from the bucket if the bucket has a token. If the bucket has no token, `ask` takes nothing and returns the time until the bucket
 * has one.
 */
export function ask(rate: Rate, bucket: Bucket | undefined, now: number): { bucket: Bucket; waitMs: number } {
  const tokens = filled(rate, bucket, now);
  return tokens >= 1
    ? { bucket: { tokens: tokens - 1, at: now }, waitMs: 0 }
    : { bucket: { tokens, at: now }, waitMs: untilThere(rate, 1 - tokens) };
}

/** True if the bucket is full, like a new bucket, so that it need not be kept. */
export const isFull = (rate: Rate, bucket: Bucket, now: number): boolean => filled(rate, bucket, now) >= rate.burst;
