import type { CloneEvidence } from "../../shared/identity.ts";

/**
 * Decides from facts whether two hosts use the identity of one node (decision I1). The normal behaviour of one host must never look like two hosts.
 * One host may normally restart, reboot, change its address, lose an answer, or move to another hub or channel. A fact that may be a late effect of
 * an ended request or connection proves nothing about a second host.
 */

/**
 * The number of milliseconds for which an old request of an agent may still present the agent's replaced certificate. `GHOST_MS` is as long as any
 * request of an agent can be under way.
 */
export const GHOST_MS = 60_000;

export interface CertificateFacts {
  /** True if the certificate was revoked by an operator, by a removal of the node, or because two hosts used the node's identity. */
  readonly revoked: boolean;
  /** True if the certificate has a successor that an agent has used, or that the hub issued to another key. */
  readonly replaced: boolean;
  /**
   * The milliseconds since a client first presented the replaced certificate after its replacement. `seenForMs` is null if no client has presented
   * the replaced certificate before the present request.
   */
  readonly seenForMs: number | null;
  /** What the agent's request asks for: the opening of its channel to the hub, or a new certificate, either for a known key or for an unknown key. */
  readonly asks: "channel" | "successor_of_known_key" | "successor_of_new_key";
}
export type CertificateVerdict = "accepted" | "revoked" | "replaced" | CloneEvidence;

/**
 * An agent stores its next key and certificate on disk before their first use, and forgets the old key and certificate afterwards. An agent never
 * uses a replaced certificate, and never requests a second successor with another key. Only a copy of the host, or a host with a restored disk, uses
 * a replaced certificate or requests a second successor with another key.
 */
export function certificateVerdict({ revoked, replaced, seenForMs, asks }: CertificateFacts): CertificateVerdict {
  if (revoked) return "revoked";
  if (!replaced) return "accepted";
  if (asks === "successor_of_new_key") return "second_key";
  return seenForMs !== null && seenForMs >= GHOST_MS ? "replaced_certificate" : "replaced";
}

/**
 * Facts about two agent sessions (connections to the hub) of one node that were alive at once. When a node's new session begins, the hub closes the
 * node's old session. If the agent of the old session still answers the hub's close message, the old and the new session were alive at once.
 */
export interface SessionFacts {
  readonly boot: "same" | "other";
  readonly address: "same" | "other";
  /** True if, within the last hour, the hub has already replaced another session of the node while its agent was still running. */
  readonly displacedBefore: boolean;
}

/**
 * An agent opens a connection only after its last connection has ended, so two sessions of a node at once can prove a second host. If two agent
 * sessions of a node were not alive at once, their different addresses prove nothing, because DHCP, NAT pools and second uplinks change addresses. A
 * boot id that returns after another boot id proves a second host (`boots_alternate`), once a host with the returned boot id sends a frame.
 */
export function sessionVerdict({ boot, address, displacedBefore }: SessionFacts): CloneEvidence | null {
  if (boot === "other") return "two_boots_at_once";
  if (address === "other") return "two_addresses_at_once";
  return displacedBefore ? "sessions_displace_each_other" : null;
}
