import { X509Certificate } from "node:crypto";
import type { TLSSocket } from "node:tls";
import { nodeUri } from "../../shared/api/enroll.ts";
import { ApiError } from "../../shared/api/errors.ts";
import { CLONE_EVIDENCE, type CloneEvidence, RENEWABLE_AFTER_EXPIRY_DAYS } from "../../shared/identity.ts";
import type { NodeId } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import { beginUse, noteReplacedUse, readCertificate } from "../db/queries/node-certificates.ts";
import { readIdentityBlock } from "../db/queries/node-identity-bars.ts";
import type { Db, InTx } from "../db/tx.ts";
import { type CertificateFacts, certificateVerdict } from "../node/clone-verdict.ts";
import { blockIdentity, WHAT_TO_DO } from "../node/identity-block.ts";
import { plainAddress } from "../outbound/addresses.ts";
import { type CertificateAuthority, keySha256 } from "./certificate-authority.ts";
import { findLostCertificate, type LostCertificate } from "./lost-certificate.ts";
import { serialOf } from "./x509.ts";

const RENEW_AFTER_EXPIRY_MS = RENEWABLE_AFTER_EXPIRY_DAYS * 24 * 3_600_000;

export interface AuthenticatedNode {
  readonly nodeId: NodeId;
  readonly generation: number;
  readonly serial: string;
  readonly address: string | null;
  /**
   * `replaced` is true only for a renewal request with a replaced certificate. The hub refuses a renewal with a replaced certificate, but still
   * checks whether the renewal's request proves that a second host uses the node's identity.
   */
  readonly replaced: boolean;
  /**
   * Set only for a client certificate that the hub issued between a backup of the database and the restore of that backup. A certificate that the hub
   * issued between a backup and its restore counts only after the agent's hello or renewal has named the node's present generation (decision I10).
   */
  readonly lost?: LostCertificate;
}

export interface IdentityDependencies {
  readonly db: Db;
  readonly inTx: InTx;
  readonly ca: CertificateAuthority;
  readonly log: Log;
}

/**
 * Only a client with a certificate of the deleted node, even an old one, gets the refusal `node_deleted`. An agent that waits for the hub's answer to
 * its uninstall relies on `node_deleted` and on no other error code.
 */
export const nodeDeleted = (): ApiError =>
  new ApiError("node_deleted", "The node was deleted, and its identity is never used again. Onboard the host again.");

/** The reason of the refusal is that the hub's database lacks the node or the certificate, e.g. because an older backup was restored. */
const UNKNOWN_NODE =
  "this hub has no such node or certificate. If the hub's database was restored from a backup, read docs/operate.md, section After a restore.";

/**
 * Identifies the client of a request by its certificate. TLS has already proven that the client holds the key of its certificate. `authenticate`
 * checks that the hub's CA issued the certificate, and that the certificate names the node of the request and its present generation. `authenticate`
 * also checks that the certificate is neither expired nor revoked nor replaced. The first use of a certificate replaces the node's earlier
 * certificates.
 */
export async function authenticate(
  deps: IdentityDependencies,
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
  if (!deps.ca.issued(certificate)) throw reject("it was not issued by this hub. Enroll again.");
  if (certificate.subjectAltName !== `URI:${nodeUri(nodeId)}`) throw reject(`it does not name node ${nodeId}.`);
  const serial = serialOf(certificate.serialNumber);
  const stored = await readCertificate(deps.db, serial);
  const found = stored === null ? await findLostCertificate(deps, nodeId, certificate) : null;
  const known = stored ?? found;
  if (known === null || known.node.id !== nodeId) throw reject(UNKNOWN_NODE);
  // Somebody who stole a CA's key can sign a new certificate, but does not have the private key of a certificate that the hub issued.
  if (known.certificate.publicKeySha256 !== keySha256(certificate.publicKey.export({ type: "spki", format: "der" })))
    throw reject("its key is not the key that it was issued for.");
  if (known.node.status === "deleted") throw nodeDeleted();
  const late = Date.now() - certificate.validToDate.getTime();
  if (late > (use === "renewal" ? RENEW_AFTER_EXPIRY_MS : 0))
    throw reject(
      use === "renewal"
        ? `it expired at ${certificate.validToDate.toISOString()}, too long ago to be renewed. Ask an operator to re-enroll the node (re-enroll-node), and run the command on this host.`
        : `it expired at ${certificate.validToDate.toISOString()}. Renew it, or check the host's clock.`,
    );
  const { generation } = known.node;
  if (known.certificate.generation !== generation)
    throw reject("the node was provisioned again since then; enroll with the new token.");
  const caller = { nodeId, generation, serial, address: plainAddress(socket.remoteAddress) };
  const { revokedAt, revokeReason, replacedAt, firstUsedAt } = known.certificate;
  if (revokedAt !== null) throw await refusalOfRevoked(deps, caller, revokeReason);
  // If a client renews a replaced certificate, the key in the request shows whether a second host uses the node's identity. The body of the renewal
  // request is not parsed yet when `authenticate` runs, so the function `renew` checks the new key later.
  if (replacedAt !== null && use === "renewal") return { ...caller, replaced: true };
  if (replacedAt !== null) throw await judgeReplaced(deps, caller, "channel");
  if (found?.lost !== undefined) return { ...caller, replaced: false, lost: found.lost };
  if (firstUsedAt === null && !(await deps.inTx((tx) => beginUse(tx, nodeId, generation, serial))))
    throw await judgeReplaced(deps, caller, "channel");
  return { ...caller, replaced: false };
}

type Caller = Omit<AuthenticatedNode, "replaced" | "lost">;

async function refusalOfRevoked({ db }: IdentityDependencies, { nodeId, generation }: Caller, reason: string | null) {
  const block = await readIdentityBlock(db, nodeId);
  if (block?.generation === generation) return blocked(block.evidence);
  return new ApiError(
    "certificate_rejected",
    `The client certificate is not accepted: it was revoked: ${reason ?? "no reason given"}. An operator can re-enroll the node (re-enroll-node).`,
  );
}

/**
 * If a replaced certificate proves that two hosts use one node's identity, the hub refuses both hosts from now on (decision I1). `judgeReplaced`
 * returns the error with which the hub refuses a request with a replaced certificate.
 */
export async function judgeReplaced(
  deps: IdentityDependencies,
  caller: Caller,
  asks: CertificateFacts["asks"],
): Promise<ApiError> {
  const { nodeId, generation, serial, address } = caller;
  const { verdict, reason } = await deps.inTx(async (tx) => {
    const known = await readCertificate(tx, serial);
    const facts = {
      revoked: known === null || known.certificate.revokedAt !== null,
      replaced: true,
      seenForMs: known?.replacedSeenForMs ?? null,
      asks,
    };
    const found = certificateVerdict(facts);
    await noteReplacedUse(tx, serial);
    if (found === "second_key" || found === "replaced_certificate")
      await blockIdentity(tx, nodeId, generation, { evidence: found, details: { serial, address } });
    return { verdict: found, reason: known?.certificate.revokeReason ?? null };
  });
  if (verdict === "revoked") return refusalOfRevoked(deps, caller, reason);
  if (verdict !== "second_key" && verdict !== "replaced_certificate")
    return new ApiError(
      "certificate_replaced",
      "The client certificate was replaced by a renewal, and the new one is in use. If this host has not renewed it, another host uses this node's identity: see the node's events.",
    );
  return blocked(verdict);
}

const blocked = (evidence: CloneEvidence): ApiError =>
  new ApiError(
    "certificate_barred",
    `The client certificate is blocked because two hosts used this node's identity: ${CLONE_EVIDENCE[evidence]}. ${WHAT_TO_DO}`,
  );
