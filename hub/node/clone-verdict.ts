import type { CloneEvidence } from "../../shared/identity.ts";

/**
 * Decides from facts whether two hosts use one identity (decision I1). The normal behaviour of one host must never look like two hosts. One host may
 * normally restart, reboot, change its address, lose an answer, or move to another hub or channel. A fact that may be a late effect of an ended
 * request or connection therefore proves nothing about a second host.
 */

/**
 * If a replaced certificate is presented again within this time, it may still belong to an old request. `GHOST_MS` is as long as any request of an
 * agent can be under way.
 */
export const GHOST_MS = 60_000;

export interface CertificateFacts {
  /** True if the certificate was revoked: by an operator, by a removal, or because two hosts used the node's identity. */
  readonly revoked: boolean;
  /** True if the certificate has a successor that is in use or was issued to another key. */
  readonly replaced: boolean;
  /**
   * Milliseconds since the replaced certificate was first presented after its replacement. Null if this request is the first with the certificate
   * since its replacement.
   */
  readonly seenForMs: number | null;
  /** The purpose of the request: to open the channel, or to get a certificate for a known or an unknown key of the node. */
  readonly asks: "channel" | "successor_of_known_key" | "successor_of_new_key";
}
export type CertificateVerdict = "accepted" | "revoked" | "replaced" | CloneEvidence;

/**
 * An agent stores its next key and certificate on disk before it uses them, and forgets the old key and certificate afterwards. An agent never uses a
 * replaced certificate, and never requests a second successor with another key. Only a copy of the host, or a host with a restored disk, uses a
 * replaced certificate or requests a second successor with another key.
 */
export function certificateVerdict({ revoked, replaced, seenForMs, asks }: CertificateFacts): CertificateVerdict {
  if (revoked) return "revoked";
  if (!replaced) return "accepted";
  if (asks === "successor_of_new_key") return "second_key";
  return seenForMs !== null && seenForMs >= GHOST_MS ? "replaced_certificate" : "replaced";
}

/**
 * Facts about two sessions that were alive at once. The older of the two sessions was replaced, and its agent then answered as only a running agent
 * does.
 */
export interface SessionFacts {
  readonly boot: "same" | "other";
  readonly address: "same" | "other";
  /** True if another session of the node was replaced while its agent was alive, within the last hour. */
  readonly displacedBefore: boolean;
}

/**
 * An agent opens a connection only after its last connection has ended, so two sessions at once can prove a second host. Addresses of sessions that
 * were not alive at once prove nothing, because DHCP, NAT pools and second uplinks change them. A boot id that returns after another one proves a
 * second host (`boots_alternate`), once the host with this boot id has sent a frame.
 */
export function sessionVerdict({ boot, address, displacedBefore }: SessionFacts): CloneEvidence | null {
  if (boot === "other") return "two_boots_at_once";
  if (address === "other") return "two_addresses_at_once";
  return displacedBefore ? "sessions_displace_each_other" : null;
}
