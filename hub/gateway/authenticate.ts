import { X509Certificate } from "node:crypto";
import type { TLSSocket } from "node:tls";
import { nodeUri } from "../../shared/api/enroll.ts";
import { ApiError } from "../../shared/api/errors.ts";
import type { NodeId } from "../../shared/ids.ts";
import { readCertificate } from "../db/queries/node-certificates.ts";
import type { Db } from "../db/tx.ts";
import type { CertificateAuthority } from "./certificate-authority.ts";
import { serialOf } from "./x509.ts";

/** A known key may still renew this long after its certificate has expired: a host that was off must not be locked out (architecture 6). */
const RENEW_AFTER_EXPIRY_MS = 7 * 24 * 3_600_000;

export interface AuthenticatedNode {
  readonly nodeId: NodeId;
  readonly generation: number;
  readonly serial: string;
}

/**
 * Said to nobody but the holder of a certificate of the node, however old: an agent that waits to hear whether its uninstall was accepted goes by
 * this code, and by no other refusal.
 */
export const nodeDeleted = (): ApiError =>
  new ApiError("node_deleted", "The node was deleted; its identity is never used again. Onboard the host anew.");

/**
 * Who is at the other end? The TLS layer has proven that the peer holds the certificate's key; here it is checked that our CA issued it, that
 * it names this node, is not revoked, is of the node's present generation, and has not expired.
 */
export async function authenticate(
  db: Db,
  ca: CertificateAuthority,
  socket: TLSSocket,
  nodeId: NodeId,
  use: "channel" | "renewal",
): Promise<AuthenticatedNode> {
  const raw = socket.getPeerCertificate().raw as Buffer | undefined;
  if (raw === undefined)
    throw new ApiError(
      "certificate_required",
      "This address needs the client certificate that enrollment gives. Enroll first.",
    );
  const certificate = new X509Certificate(raw);
  const reject = (detail: string) =>
    new ApiError("certificate_rejected", `The client certificate is not accepted: ${detail}`);
  if (!ca.issued(certificate)) throw reject("it was not issued by this hub. Enroll again.");
  if (certificate.subjectAltName !== `URI:${nodeUri(nodeId)}`) throw reject(`it does not name node ${nodeId}.`);
  const serial = serialOf(certificate.serialNumber);
  const known = await readCertificate(db, serial);
  if (known === null || known.node.id !== nodeId) throw reject("its node is not known any more.");
  if (known.node.status === "deleted") throw nodeDeleted();
  const late = Date.now() - certificate.validToDate.getTime();
  if (late > (use === "renewal" ? RENEW_AFTER_EXPIRY_MS : 0))
    throw reject(`it expired at ${certificate.validToDate.toISOString()}. Renew it, or check the host's clock.`);
  if (known.certificate.revokedAt !== null)
    throw reject(`it was revoked: ${known.certificate.revokeReason ?? "no reason given"}.`);
  if (known.certificate.generation !== known.node.generation)
    throw reject("the node was provisioned anew since; enroll with the new token.");
  return { nodeId, generation: known.node.generation, serial };
}
