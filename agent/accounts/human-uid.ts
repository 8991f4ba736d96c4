/** The ranges of uids from 1000 on that no person has (systemd's UIDS-GIDS): temporary service accounts, `nobody`, and the uids -1 and -2. */
const FIRST_HUMAN_UID = 1_000;
const FIRST_SERVICE_UID = 61_184;
const LAST_SHORT_UID = 65_535;
const LAST_HUMAN_UID = 4_294_967_293;

/**
 * Whether a uid may belong to a person: one of the site's people, a user of a directory service, a tenant, or the subordinate uid of one of them.
 * Subordinate uids and the uids of a directory service may be above 65,535.
 */
export const isHuman = (uid: number): boolean =>
  (uid >= FIRST_HUMAN_UID && uid < FIRST_SERVICE_UID) || (uid > LAST_SHORT_UID && uid <= LAST_HUMAN_UID);
