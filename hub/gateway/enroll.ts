import { and, eq, isNull, lt, ne, sql } from "drizzle-orm";
import type { EnrollRequest, EnrollResponse } from "../../shared/api/enroll.ts";
import { ApiError } from "../../shared/api/errors.ts";
import type { NodeId } from "../../shared/ids.ts";
import { isSupportedProtocol, OLDEST_PROTOCOL_VERSION, PROTOCOL_VERSION } from "../../shared/protocol/version.ts";
import { waitKey, wakeWorkflows } from "../db/queries/workflow-wakes.ts";
import {
  type EnrollmentToken,
  enrollmentTokens,
  type Node,
  nodeCertificates,
  nodeEvents,
  nodes,
} from "../db/schema/index.ts";
import type { InTx, Tx } from "../db/tx.ts";
import { tokenHash } from "../node/enrollment-tokens.ts";
import type { CertificateAuthority, CheckedRequest, SignedNodeCertificate } from "./certificate-authority.ts";
import type { TaskSigner } from "./task-signer.ts";

export interface EnrollDependencies {
  readonly inTx: InTx;
  readonly ca: CertificateAuthority;
  readonly signer: TaskSigner;
}

export function refuseOldProtocol(version: number): void {
  if (isSupportedProtocol(version)) return;
  throw new ApiError(
    "protocol_unsupported",
    `This hub speaks agent protocol ${OLDEST_PROTOCOL_VERSION} to ${PROTOCOL_VERSION}, not ${version}. Install an agent of this hub's version.`,
  );
}

/**
 * Turns a one-time token into a client certificate, atomically: of two that use it at once, one wins. The same key may ask again with
 * the same token, since its answer may have been lost; another key may not. A refusal changes nothing. Enrolling does not make the node
 * active: the onboarding does.
 */
export async function enroll(deps: EnrollDependencies, request: EnrollRequest): Promise<EnrollResponse> {
  refuseOldProtocol(request.protocol_version);
  const checked = await deps.ca.checkRequest(request.csr_pem, request.node_id);
  // Signed before the transaction, so that no cryptography holds the token's lock; thrown away when the token is refused.
  const signed = await deps.ca.signNode(request.node_id, checked);
  const generation = await deps.inTx(async (tx) => {
    const token = await usableToken(tx, request, checked);
    const node = await nodeOf(tx, token.nodeId);
    await tx
      .update(enrollmentTokens)
      .set({ usedAt: sql`coalesce(${enrollmentTokens.usedAt}, now())`, usedKeySha256: checked.publicKeySha256 })
      .where(eq(enrollmentTokens.id, token.id));
    await keepCertificate(tx, node, signed);
    await revokeOlderGenerations(tx, node.id, node.generation);
    await tx.insert(nodeEvents).values({
      nodeId: node.id,
      type: "enrolled",
      owner: "agent",
      message: `Enrolled as ${request.hostname} with agent ${request.agent_version}`,
      details: { serial: signed.serial, boot_id: request.boot_id, generation: node.generation },
    });
    await wakeWorkflows(tx, [waitKey.node(node.id)]);
    return node.generation;
  });
  return answer(deps, request.node_id, generation, signed);
}

async function usableToken(tx: Tx, request: EnrollRequest, checked: CheckedRequest): Promise<EnrollmentToken> {
  const [found] = await tx
    .select({ token: enrollmentTokens, expired: sql<boolean>`${enrollmentTokens.expiresAt} <= now()` })
    .from(enrollmentTokens)
    .where(eq(enrollmentTokens.tokenSha256, tokenHash(request.token)))
    .for("update");
  if (found === undefined || (found.token.revokedAt !== null && found.token.usedAt === null)) {
    throw new ApiError(
      "token_unknown",
      "The enrollment token is not known, or a newer one has replaced it. Deploy the host again, or ask an operator for a new token.",
    );
  }
  const { token, expired } = found;
  if (token.nodeId !== request.node_id)
    throw new ApiError(
      "token_of_another_node",
      `The enrollment token is not node ${request.node_id}'s. Use the token that was made for this node.`,
    );
  if (token.boundMacs.length > 0 && !token.boundMacs.some((mac) => request.macs.includes(mac))) {
    throw new ApiError(
      "token_of_another_node",
      "The enrollment token is bound to the NICs of another machine: this host has none of them.",
    );
  }
  if (token.usedAt !== null && token.usedKeySha256 !== checked.publicKeySha256) {
    throw new ApiError(
      "token_used",
      "The enrollment token was used already, with another key. A token is good for one host; an operator can start a new provisioning.",
    );
  }
  if (expired && token.usedAt === null)
    throw new ApiError(
      "token_expired",
      `The enrollment token expired at ${token.expiresAt.toISOString()}. It is renewed while the onboarding waits for this host; ask again later.`,
    );
  return token;
}

async function nodeOf(tx: Tx, nodeId: NodeId): Promise<Node> {
  const [node] = await tx
    .select()
    .from(nodes)
    .where(and(eq(nodes.id, nodeId), ne(nodes.status, "deleted")));
  if (node === undefined)
    throw new ApiError(
      "token_unknown",
      "The node that the enrollment token was made for does not exist any more. Start a new onboarding.",
    );
  return node;
}

/** A new certificate for the key of the caller, who has proven one that is still accepted (see `authenticate`). */
export async function renew(deps: EnrollDependencies, nodeId: NodeId, csrPem: string): Promise<EnrollResponse> {
  const checked = await deps.ca.checkRequest(csrPem, nodeId);
  const signed = await deps.ca.signNode(nodeId, checked);
  const generation = await deps.inTx(async (tx) => {
    const node = await nodeOf(tx, nodeId);
    await keepCertificate(tx, node, signed);
    await tx.insert(nodeEvents).values({
      nodeId,
      type: "certificate_renewed",
      owner: "agent",
      message: "Certificate renewed",
      details: { serial: signed.serial },
    });
    return node.generation;
  });
  return answer(deps, nodeId, generation, signed);
}

async function keepCertificate(tx: Tx, node: Node, signed: SignedNodeCertificate): Promise<void> {
  await tx.insert(nodeCertificates).values({
    serial: signed.serial,
    nodeId: node.id,
    generation: node.generation,
    publicKeySha256: signed.publicKeySha256,
    notBefore: signed.notBefore,
    notAfter: signed.notAfter,
  });
}

async function revokeOlderGenerations(tx: Tx, nodeId: NodeId, generation: number): Promise<void> {
  await tx
    .update(nodeCertificates)
    .set({ revokedAt: sql`now()`, revokeReason: "the node was provisioned anew" })
    .where(
      and(
        eq(nodeCertificates.nodeId, nodeId),
        lt(nodeCertificates.generation, generation),
        isNull(nodeCertificates.revokedAt),
      ),
    );
}

const answer = (
  deps: EnrollDependencies,
  nodeId: NodeId,
  generation: number,
  signed: SignedNodeCertificate,
): EnrollResponse => ({
  node_id: nodeId,
  generation,
  certificate_pem: signed.pem,
  ca_pem: deps.ca.caPem,
  not_after: signed.notAfter.toISOString(),
  task_signing_public_key: deps.signer.publicKey,
});
