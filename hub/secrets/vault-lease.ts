export interface Lease {
  /** The length of the Vault token's lease in seconds; 0 at the login means that the token never ends. */
  readonly seconds: number;
  readonly renewable: boolean;
}

/**
 * The hub's next step for its Vault token, and the time until that step. The next step for the Vault token is null if neither a renewal nor a login
 * can help the hub.
 */
export type NextStep = { readonly afterMs: number; readonly how: "renew" | "log_in" } | null;

const SHORTEST_MS = 1_000;
/**
 * The hub repeats a failed renewal or login to Vault after the duration of its token's lease divided by `RETRIES`. Several repetitions of a failed
 * renewal fit into one lease, and a long lease causes few requests to Vault.
 */
const RETRIES = 20;

/**
 * Plans the renewal of the hub's Vault token at about half of the token's lease. Because the hub renews its token early, the hub keeps the token
 * during an outage of Vault. The time of the renewal varies by a fifth of the lease, so that several hubs do not send their renewals to Vault at
 * once. The argument `granted` is the lease that Vault granted at the login. If a renewal's lease is shorter than the login's lease, the Vault token
 * has reached its maximum life, and the hub needs a new login.
 */
export function nextStep(lease: Lease, granted: Lease, canLogIn: boolean, random: number): NextStep {
  if (granted.seconds <= 0) return null;
  const afterMs = Math.max(SHORTEST_MS, lease.seconds * 1000 * (0.4 + 0.2 * random));
  const capped = lease.seconds < granted.seconds;
  if (canLogIn && (!lease.renewable || capped)) return { afterMs, how: "log_in" };
  // In the last second of a token's lease, Vault reports 0 seconds.
  return lease.renewable && lease.seconds > 0 ? { afterMs, how: "renew" } : null;
}

/** Returns the milliseconds after which the hub repeats a failed renewal or login. */
export const retryMs = (granted: Lease): number => Math.max(SHORTEST_MS, (granted.seconds * 1000) / RETRIES);
