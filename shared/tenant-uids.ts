/**
 * The first uid of a tenant's account. People and images of the site use uids from 1000, `systemd-homed` uses uids from 60001, and subordinate uids
 * begin at 100000 (systemd's UIDS-GIDS).
 */
export const FIRST_TENANT_UID = 20_000;
export const LAST_TENANT_UID = 59_999;
