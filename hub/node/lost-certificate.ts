/**
 * Decides about a certificate of the hub's CA that the database does not have (decision I10). After a restore of an older backup, the hosts have
 * certificates that the hub has issued between the backup and the restore. If the hub refused the certificates that a restore removed from its
 * database, running hosts would be locked out.
 */
export interface LostFacts {
  /** True if the certificate's validity begins between the time of a backup of the database and the time when the backup was restored. */
  readonly inLostTime: boolean;
  /**
   * True if the CA that is now in force has issued the certificate. A certificate of an older CA is not accepted, because somebody may have stolen
   * the key of the older CA.
   */
  readonly byCaInForce: boolean;
  /** True if the node has got its present generation after the restore of the database, for example because an operator had it enroll again. */
  readonly generationSince: boolean;
  /** True if a certificate of the node's present generation was revoked, or if two hosts have used the identity of the generation. */
  readonly revoked: boolean;
  /** True if the node uses a certificate that was issued later than the one that a restore removed from the database. */
  readonly laterInUse: boolean;
}
export type LostVerdict = "unknown" | "accepted" | "replaced";

/**
 * A lost certificate, which a restore removed from the database, counts as one of the node's certificates. If the node already uses a later
 * certificate, the lost certificate counts as replaced, so that a second host with the node's identity is found.
 */
export function lostVerdict({ inLostTime, byCaInForce, generationSince, revoked, laterInUse }: LostFacts): LostVerdict {
  if (!inLostTime || !byCaInForce || generationSince || revoked) return "unknown";
  return laterInUse ? "replaced" : "accepted";
}
