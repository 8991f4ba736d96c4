const MINUTE_MS = 60_000;
const LONGEST_MINUTES = 16;

/**
 * How long a credential is not sent again after Vault has refused it several times in a row: 1, 4, then 16 minutes. Without this pause each poll of
 * each site would be a login. Vault's user lockout (1.13 and newer) blocks a role for a quarter of an hour after five failed logins, if no two of
 * them are a quarter of an hour apart. A blocked role is refused even with the right secret.
 */
export const loginHoldMs = (refusals: number): number =>
  refusals <= 0 ? 0 : MINUTE_MS * Math.min(LONGEST_MINUTES, 4 ** (refusals - 1));

/** For this long after a login that did not help, a forbidden call causes no new login. */
export const FRUITLESS_MS = MINUTE_MS;
