/** The life of a Vault token, as Vault stated it at the login. */
export interface Lease {
  /** 0 means that the token never ends, if a login granted that. */
  readonly seconds: number;
  readonly renewable: boolean;
}

/** The next step for a token and the time until it. Null if nothing can or must be done. */
export type NextStep = { readonly afterMs: number; readonly how: "renew" | "log_in" } | null;

const SHORTEST_MS = 1_000;
/** A failed step is repeated after this fraction of the lease. Several repetitions thus fit into the lease, and a long lease causes few requests. */
const RETRIES = 20;

/**
 * The next step comes at about half of the lease, so that an outage of Vault does not cost the token. The time varies by a fifth of the lease, so
 * that several hubs do not come at once. `granted` is the lease of the login. A renewal that grants less has reached the token's maximum life, and a
 * new login is needed.
 */
export function nextStep(lease: Lease, granted: Lease, canLogIn: boolean, random: number): NextStep {
  if (granted.seconds <= 0) return null;
  const afterMs = Math.max(SHORTEST_MS, lease.seconds * 1000 * (0.4 + 0.2 * random));
  const capped = lease.seconds < granted.seconds;
  if (canLogIn && (!lease.renewable || capped)) return { afterMs, how: "log_in" };
  // In the lease's last second Vault reports 0.
  return lease.renewable && lease.seconds > 0 ? { afterMs, how: "renew" } : null;
}

/** How long after a failed step it is repeated. */
export const retryMs = (granted: Lease): number => Math.max(SHORTEST_MS, (granted.seconds * 1000) / RETRIES);
