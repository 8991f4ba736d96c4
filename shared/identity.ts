/** Each kind of evidence that two hosts use one identity (decision I1) has a description. */
export const CLONE_EVIDENCE = {
  replaced_certificate: "a certificate was used again and again after the one that replaced it",
  second_key: "a certificate that was replaced already asked for a successor with a key of its own",
  boots_alternate: "a boot of the host came back after another boot had followed it",
  two_boots_at_once: "two boots were connected at once",
  two_addresses_at_once: "two addresses were connected at once",
  sessions_displace_each_other: "two live sessions displaced each other again and again",
} as const;
export type CloneEvidence = keyof typeof CLONE_EVIDENCE;
export const CLONE_EVIDENCE_CODES = Object.keys(CLONE_EVIDENCE) as [CloneEvidence, ...CloneEvidence[]];

/** How long after its expiry a node's certificate can still be renewed, so that a host that was off is not locked out (architecture 11). */
export const RENEWABLE_AFTER_EXPIRY_DAYS = 7;
