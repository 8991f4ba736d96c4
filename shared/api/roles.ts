/** An API token with the role `viewer` may read, and one with the role `admin` may also write. */
export const API_ROLES = ["admin", "viewer"] as const;
export type ApiRole = (typeof API_ROLES)[number];
