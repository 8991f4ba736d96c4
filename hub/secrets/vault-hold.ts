const MINUTE_MS = 60_000;
const LONGEST_MINUTES = 16;

/**
 * How long a credential that Vault has refused so many times in a row is not sent again: 1, 4, then 16 minutes. Each look at each site would else be a login,
 * and Vault (user lockout, 1.13 and newer) refuses a role for a quarter of an hour, also with the right secret, after five bad logins of which none lies
 * as long after the one before.
 */
export const loginHoldMs = (refusals: number): number =>
  refusals <= 0 ? 0 : MINUTE_MS * Math.min(LONGEST_MINUTES, 4 ** (refusals - 1));

/** How long after a login that helped no forbidden call another call that is forbidden makes none. */
export const FRUITLESS_MS = MINUTE_MS;
