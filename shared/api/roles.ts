/** What a token may do: `viewer` reads, `admin` writes as well. */
export const API_ROLES = ["admin", "viewer"] as const;
export type ApiRole = (typeof API_ROLES)[number];
