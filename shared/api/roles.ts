/** The roles of a token: `viewer` reads, `admin` also writes. */
export const API_ROLES = ["admin", "viewer"] as const;
export type ApiRole = (typeof API_ROLES)[number];
