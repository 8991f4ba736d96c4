const MINUTE_MS = 60_000;
const LONGEST_MINUTES = 16;

/**
 * Returns the pause after several refusals of one credential by Vault in a row: 1, 4, then 16 minutes. Without a pause after refused logins, each
 * poll of each site would be a login to Vault. Vault's user lockout (1.13 and newer) blocks a role for a quarter of an hour after five failed logins
 * in quick succession. Vault refuses a blocked role even with the right secret.
 */
export const loginHoldMs = (refusals: number): number =>
  refusals <= 0 ? 0 : MINUTE_MS * Math.min(LONGEST_MINUTES, 4 ** (refusals - 1));

/** The time after a forbidden call with a new and valid Vault token in which further forbidden calls cause no login to Vault. */
export const FRUITLESS_MS = MINUTE_MS;
