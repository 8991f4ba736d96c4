import type { CloneEvidence } from "../../shared/identity.ts";

/**
 * Are there two users of one identity? Facts in, verdict out, and nothing else (decision I1). What one host does by itself must never look like two: it
 * restarts, reboots, changes its address, loses an answer, and goes from hub to hub and from one way to the other. So nothing counts that could be
 * the late end of something that is over: a request on its way, a hub that stood still, a connection that TCP has not missed yet.
 */

/** How long the first use of a replaced certificate may be the ghost of one that was made before: as long as any request of an agent is on its way. */
export const GHOST_MS = 60_000;

export interface CertificateFacts {
  /** On the deny list, by an operator, a removal or a bar. */
  readonly revoked: boolean;
  /** The one that replaced it is in use, or was given to another key. */
  readonly replaced: boolean;
  /** Since it was presented for the first time after that; null: this is the first time. */
  readonly seenForMs: number | null;
  /** What it is presented for: the channel; or a successor, for a key that the node has had a certificate for, or that it never had. */
  readonly asks: "channel" | "successor_of_known_key" | "successor_of_new_key";
}
export type CertificateVerdict = "accepted" | "revoked" | "replaced" | CloneEvidence;

/**
 * An agent has its next key and its new certificate on disk before it uses either, and forgets the old one then. So it never comes back to a certificate
 * that was replaced, and never asks for a second successor with another key; only a copy of it does, or a disk that was put back.
 */
export function certificateVerdict({ revoked, replaced, seenForMs, asks }: CertificateFacts): CertificateVerdict {
  if (revoked) return "revoked";
  if (!replaced) return "accepted";
  if (asks === "successor_of_new_key") return "second_key";
  return seenForMs !== null && seenForMs >= GHOST_MS ? "replaced_certificate" : "replaced";
}

/** Of two sessions that lived at once: one gave way to the other, and answered that as only a running agent does. */
export interface SessionFacts {
  readonly boot: "same" | "other";
  readonly address: "same" | "other";
  /** Whether this has happened within the last hour, with the same boot and address. */
  readonly displacedBefore: boolean;
}

/**
 * An agent opens a connection only once its last one has ended. Sessions that did not live at once show nothing by their addresses: DHCP, a NAT's pool and
 * a second uplink change them. By their boots they do where one comes back after another: that is `boots_alternate`, once its host has spoken.
 */
export function sessionVerdict({ boot, address, displacedBefore }: SessionFacts): CloneEvidence | null {
  if (boot === "other") return "two_boots_at_once";
  if (address === "other") return "two_addresses_at_once";
  return displacedBefore ? "sessions_displace_each_other" : null;
}
