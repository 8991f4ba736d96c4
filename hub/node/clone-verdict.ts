import type { CloneEvidence } from "../../shared/identity.ts";

/**
 * Decides from facts whether two hosts use one identity (decision I1). The normal behaviour of one host must never look like two hosts. A host
 * restarts, reboots, changes its address, loses an answer, or moves to another hub or channel. Facts that may be a late effect of an ended request or
 * connection therefore count for nothing.
 */

/** How long after its first use a replaced certificate may still belong to an old request: as long as any request of an agent can be under way. */
export const GHOST_MS = 60_000;

export interface CertificateFacts {
  /** True if an operator, a removal or an identity bar revoked the certificate. */
  readonly revoked: boolean;
  /** True if the certificate that replaced it is in use, or was issued to another key. */
  readonly replaced: boolean;
  /**
   * Milliseconds since the certificate was first presented after its replacement. Null if the certificate is presented for the first time since then.
   */
  readonly seenForMs: number | null;
  /** The purpose of the request: the channel, or a new certificate for a key that the node had before or for an unknown key. */
  readonly asks: "channel" | "successor_of_known_key" | "successor_of_new_key";
}
export type CertificateVerdict = "accepted" | "revoked" | "replaced" | CloneEvidence;

/**
 * An agent stores its next key and certificate on disk before it uses them, and then forgets the old key and certificate. An agent therefore never
 * uses a replaced certificate, and never requests a second successor with another key. Only a copy of the host, or a host with a restored disk, does
 * so.
 */
export function certificateVerdict({ revoked, replaced, seenForMs, asks }: CertificateFacts): CertificateVerdict {
  if (revoked) return "revoked";
  if (!replaced) return "accepted";
  if (asks === "successor_of_new_key") return "second_key";
  return seenForMs !== null && seenForMs >= GHOST_MS ? "replaced_certificate" : "replaced";
}

/** Facts about two sessions that were alive at once. The older one was replaced, and then answered as only a running agent does. */
export interface SessionFacts {
  readonly boot: "same" | "other";
  readonly address: "same" | "other";
  /** True if the same happened within the last hour. */
  readonly displacedBefore: boolean;
}

/**
 * An agent opens a connection only after its last one has ended. Addresses of sessions that were not alive at once prove nothing, because DHCP, NAT
 * pools and second uplinks change them. A boot id that returns after another one is a proof (`boots_alternate`), once its host has sent a frame.
 */
export function sessionVerdict({ boot, address, displacedBefore }: SessionFacts): CloneEvidence | null {
  if (boot === "other") return "two_boots_at_once";
  if (address === "other") return "two_addresses_at_once";
  return displacedBefore ? "sessions_displace_each_other" : null;
}
