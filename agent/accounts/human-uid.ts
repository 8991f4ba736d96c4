/** People have no uids from 61,184 to 65,535 and above 4,294,967,293 (systemd's UIDS-GIDS). */
const FIRST_HUMAN_UID = 1_000;
const FIRST_SERVICE_UID = 61_184;
const LAST_SHORT_UID = 65_535;
const LAST_HUMAN_UID = 4_294_967_293;

/**
 * Whether a uid may belong to a person: one of the site's people, a user of a directory service, or a tenant. A subordinate uid of a person, which
 * the person's containers use, also belongs to the person. The uids of a directory service may be above 65,535.
 */
export const isHuman = (uid: number): boolean =>
  (uid >= FIRST_HUMAN_UID && uid < FIRST_SERVICE_UID) || (uid > LAST_SHORT_UID && uid <= LAST_HUMAN_UID);
