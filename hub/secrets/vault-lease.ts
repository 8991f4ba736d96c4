/** How long a Vault token lives, as Vault said when it gave it. */
export interface Lease {
  /** 0: it never ends, where a login grants that. */
  readonly seconds: number;
  readonly renewable: boolean;
}

/** What is to be done about a token before its lease ends, and after how long; null: nothing can or must be. */
export type NextStep = { readonly afterMs: number; readonly how: "renew" | "log_in" } | null;

const SHORTEST_MS = 1_000;
/** Of a lease; what failed in its midst can be tried again several times before it ends, and a long one is not asked for every second. */
const RETRIES = 20;

/**
 * At about half of the lease, so that a Vault that is away for a while costs no token; spread over a fifth of it, so that several hubs do not come at once.
 * `granted` is the lease of the login: a renewal that grants less has met the token's longest life, and only another login goes on.
 */
export function nextStep(lease: Lease, granted: Lease, canLogIn: boolean, random: number): NextStep {
  if (granted.seconds <= 0) return null;
  const afterMs = Math.max(SHORTEST_MS, lease.seconds * 1000 * (0.4 + 0.2 * random));
  const capped = lease.seconds < granted.seconds;
  if (canLogIn && (!lease.renewable || capped)) return { afterMs, how: "log_in" };
  // Of the last second Vault says 0.
  return lease.renewable && lease.seconds > 0 ? { afterMs, how: "renew" } : null;
}

/** How long after a step that failed it is tried again. */
export const retryMs = (granted: Lease): number => Math.max(SHORTEST_MS, (granted.seconds * 1000) / RETRIES);
