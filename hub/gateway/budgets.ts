import { MAX_FRAME_BYTES } from "../../shared/protocol/version.ts";

/**
 * What one host, one address and one operator's token may cost a hub: every number of it. A good agent stays far below each, also behind one NAT with a thousand others,
 * on a network that cuts its connections, and while somebody waits for its first boot. Each hub counts for itself, in memory; what is kept of a host is
 * bounded in the database, for all hubs together (`hub/db/kept.ts`).
 */

/**
 * Largest body of each route of the agent listener, in bytes. A real enrollment has 1.3 KB, with 256 NICs 6.4 KB; its fields at their bounds
 * have 14.5 KB. A hello with a full journal has 93 KB. The others take no body.
 */
export const BODY_BYTES = {
  enroll: 16 * 1024,
  renewal: 16 * 1024,
  session: 128 * 1024,
  frames: MAX_FRAME_BYTES,
  /** All of a host's public keys are a few kilobytes. */
  cloudInitReport: 64 * 1024,
} as const;

/** `burst` at once, and after that so many a minute. */
export interface Rate {
  readonly burst: number;
  readonly perMinute: number;
}

/** Of one node, whatever way its frames come. */
export const NODE_RATES = {
  /** One a connection. An agent whose connections all end at once opens some twenty a minute, and fewer with each failure. */
  session: { burst: 60, perMinute: 20 },
  /** Known tokens alone count. An agent whose token has expired asks after 6 s, and soon once a minute. */
  enrollment: { burst: 20, perMinute: 4 },
  /** Of the bootstrap script and the agent's package, by the node's token. A first boot takes each once, and again where that breaks off. */
  download: { burst: 20, perMinute: 4 },
  /** An agent renews twice a day, and tries again once a minute where that fails. */
  renewal: { burst: 10, perMinute: 1 },
  /** Requests of the long poll: each frame is one, beside the poll itself. */
  poll: { burst: 600, perMinute: 600 },
  bytes: { burst: 4 * 1024 * 1024, perMinute: 4 * 1024 * 1024 },
  /** At the shortest time to live that a site would set, 1 s, an agent sends 200 a minute. */
  heartbeat: { burst: 1_000, perMinute: 600 },
  /** When something has changed, looked at every 2 s, and every two minutes; again with each heartbeat until it is acknowledged. */
  readiness: { burst: 120, perMinute: 60 },
  /** One a connection. */
  inventory: { burst: 60, perMinute: 20 },
  progress: { burst: 120, perMinute: 60 },
  /** Acknowledgements, of the hub's keys too, and results; a result is said again with each heartbeat until it is acknowledged. */
  task: { burst: 600, perMinute: 300 },
  /** Reports of cloud-init by the node's report token: eighty a boot. */
  cloudInit: { burst: 400, perMinute: 120 },
} as const satisfies Record<string, Rate>;
export type NodeKind = keyof typeof NODE_RATES;

/** Of one address: an IPv4 address, or the /64 of an IPv6 address. A thousand hosts may stand behind it. */
export const ADDRESS_RATES = {
  /** Connections, before TLS. */
  connection: { burst: 5_000, perMinute: 6_000 },
  /** Requests without a good token or certificate. A host whose token has expired asks again once in six seconds, and soon once a minute. */
  refusal: { burst: 5_000, perMinute: 3_000 },
  /** Requests that need neither: the chain of the hub's keys, for which a host asks once after a rotation that it slept through, and the listener's health. */
  open: { burst: 3_000, perMinute: 3_000 },
} as const satisfies Record<string, Rate>;
export type AddressKind = keyof typeof ADDRESS_RATES;

/**
 * Of one token of the admin API, at one hub. A console that shows everything asks 21 times in two seconds; ten of them, a script that onboards a fleet host by
 * host, and whoever lists it meanwhile stay below. A script that has run away gets no more than a part of the hub, and the other tokens have theirs.
 */
export const TOKEN_RATES = {
  request: { burst: 1_000, perMinute: 9_000 },
  /** Each is a transaction, with a row of the audit. Counted as a request as well. */
  write: { burst: 500, perMinute: 3_000 },
} as const satisfies Record<string, Rate>;
export type TokenKind = keyof typeof TOKEN_RATES;

export const LIMITS = {
  /** Connections that have not shown to be a host's of this hub. Beyond it the oldest is cut: a host shows it with its first request. */
  unprovenPerAddress: 2_000,
  unprovenInAll: 6_000,
  /** Handshakes that are begun in a turn, of one address and in all: 400 and 1,600 a second, of half a millisecond each. Those beyond wait for the next turn. */
  handshakeTurnMs: 10,
  handshakesPerAddress: 4,
  handshakesInAll: 16,
  /** A connection is over its budget without a pause for this long before its node is called noisy, and the connection is closed. */
  noisyAfterMs: 30_000,
  /** A node is noisy no more when it has kept to its budgets for this long. */
  calmAfterMs: 300_000,
  /** Of an agent's frames that wait to be taken; beyond it the agent is not read from. */
  waitingFrames: 64,
  waitingBytes: 1024 * 1024,
} as const;

export interface Bucket {
  /** Below zero while what was taken is still to be waited for. */
  readonly tokens: number;
  /** Milliseconds of a clock that only goes forward. */
  readonly at: number;
}

const filled = ({ burst, perMinute }: Rate, bucket: Bucket | undefined, now: number): number =>
  bucket === undefined ? burst : Math.min(burst, bucket.tokens + ((now - bucket.at) * perMinute) / 60_000);

const untilThere = ({ perMinute }: Rate, missing: number): number => Math.ceil((missing * 60_000) / perMinute);

/** Takes the cost in any case, and says how long whoever caused it has to wait before the next is taken. */
export function charge(
  rate: Rate,
  bucket: Bucket | undefined,
  now: number,
  cost: number,
): { bucket: Bucket; waitMs: number } {
  const tokens = Math.max(-rate.burst, filled(rate, bucket, now) - cost);
  return { bucket: { tokens, at: now }, waitMs: tokens >= 0 ? 0 : untilThere(rate, -tokens) };
}

/** Takes one if it is there; else nothing, and says when it will be. */
export function ask(rate: Rate, bucket: Bucket | undefined, now: number): { bucket: Bucket; waitMs: number } {
  const tokens = filled(rate, bucket, now);
  return tokens >= 1
    ? { bucket: { tokens: tokens - 1, at: now }, waitMs: 0 }
    : { bucket: { tokens, at: now }, waitMs: untilThere(rate, 1 - tokens) };
}

/** Whether the bucket says nothing that a new one would not say. */
export const isFull = (rate: Rate, bucket: Bucket, now: number): boolean => filled(rate, bucket, now) >= rate.burst;
