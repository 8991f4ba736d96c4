/** The roles of an operator's API token: a `viewer` reads, an `admin` also writes. */
export const API_ROLES = ["admin", "viewer"] as const;
export type ApiRole = (typeof API_ROLES)[number];
