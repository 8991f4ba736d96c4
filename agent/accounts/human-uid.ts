/** The ranges of uids that no person has, above the uids of the system (systemd's UIDS-GIDS): temporary service accounts, `nobody`, and -1 and -2. */
const FIRST_HUMAN_UID = 1_000;
const FIRST_SERVICE_UID = 61_184;
const LAST_SHORT_UID = 65_535;
const LAST_HUMAN_UID = 4_294_967_293;

/**
 * Whether a uid is that of a human user: the site's people, users of a directory, tenants, and the subordinate uids of all of them. Subordinate uids
 * and uids of a directory are above 65,535.
 */
export const isHuman = (uid: number): boolean =>
  (uid >= FIRST_HUMAN_UID && uid < FIRST_SERVICE_UID) || (uid > LAST_SHORT_UID && uid <= LAST_HUMAN_UID);
