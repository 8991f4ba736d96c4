import type { EnrollRequest, EnrollResponse } from "../../shared/api/enroll.ts";
import { ApiError } from "../../shared/api/errors.ts";
import type { NodeId } from "../../shared/ids.ts";
import { isSupportedProtocol, OLDEST_PROTOCOL_VERSION, PROTOCOL_VERSION } from "../../shared/protocol/version.ts";
import { lockToken, markTokenUsed, nodeOfToken } from "../db/queries/enrollment-tokens.ts";
import {
  isVoid,
  keepCertificate,
  readKeyUse,
  readUnused,
  revokeCertificates,
} from "../db/queries/node-certificates.ts";
import { recordNodeEvent } from "../db/queries/node-events.ts";
import { lockNode } from "../db/queries/nodes.ts";
import { waitKey, wakeWorkflows } from "../db/queries/workflow-wakes.ts";
import type { EnrollmentToken, Node } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";
import { enrollAdoptedNode } from "../node/adopted-host.ts";
import { tokenHash } from "../node/enrollment-tokens.ts";
import { enrollExternalNode } from "../node/external/admit-node.ts";
import { healIdentity } from "../node/identity-block.ts";
import { enrollManualNode } from "../node/manual-mode.ts";
import { type AuthenticatedNode, type IdentityDependencies, judgeReplaced, nodeDeleted } from "./authenticate.ts";
import type { CheckedRequest, SignedNodeCertificate } from "./certificate-authority.ts";
import type { Guard } from "./guard.ts";
import { fitsGeneration } from "./lost-certificate.ts";
import type { TaskSigner } from "./task-signer.ts";

export interface EnrollDependencies extends IdentityDependencies {
  readonly signer: TaskSigner;
  readonly guard: Guard;
}

export function refuseOldProtocol(version: number): void {
  if (isSupportedProtocol(version)) return;
  throw new ApiError(
    "protocol_unsupported",
    `This hub speaks agent protocol ${OLDEST_PROTOCOL_VERSION} to ${PROTOCOL_VERSION}, not ${version}. Install an agent of this hub's version.`,
  );
}

export const unknownToken = (): ApiError =>
  new ApiError(
    "token_unknown",
    "The enrollment token is not known, or a newer one has replaced it. Deploy the host again, or ask an operator for a new token.",
  );

/**
 * Exchanges a one-time enrollment token for a client certificate. If two clients send one enrollment token at the same time, only one of them gets a
 * certificate, because the exchange is one transaction. A host may send its enrollment token again with its first key, because the hub's first answer
 * may have been lost. A host with a different key cannot use an enrollment token that was used before. A refused enrollment changes nothing in the
 * database. An enrollment does not make the node active; only the node's onboarding makes it active.
 */
export async function enroll(deps: EnrollDependencies, request: EnrollRequest): Promise<EnrollResponse> {
  refuseOldProtocol(request.protocol_version);
  // The hub looks up the enrollment token first, so that an unknown client without a token costs the hub one read and no cryptography.
  const tokenOf = await nodeOfToken(deps.db, tokenHash(request.token));
  if (tokenOf === null) throw unknownToken();
  // A host may enroll several times with the same key and get a certificate each time, so a budget limits enrollment requests.
  deps.guard.asks(tokenOf, "enrollment");
  const checked = await deps.ca.checkRequest(request.csr_pem, request.node_id);
  // The hub signs the host's certificate before the transaction, so that no cryptography runs while the enrollment token is locked. If the hub
  // refuses the enrollment token, it discards the signed certificate.
  const signed = await deps.ca.signNode(request.node_id, checked);
  const { generation, given } = await deps.inTx(async (tx) => {
    const { token, node } = await usableToken(tx, request, checked);
    await markTokenUsed(tx, token.id, checked.publicKeySha256);
    const unused = await readUnused(tx, node.id, node.generation, checked.publicKeySha256);
    if (unused !== null) return { generation: node.generation, given: unused };
    await enrollManualNode(tx, node);
    await enrollExternalNode(tx, node);
    await enrollAdoptedNode(tx, node, token);
    await keepCertificate(tx, certificateOf(node, signed));
    await healIdentity(tx, node);
    await revokeCertificates(tx, node.id, { belowGeneration: node.generation }, "the node was provisioned again");
    await recordNodeEvent(tx, {
      nodeId: node.id,
      type: "enrolled",
      owner: "agent",
      message: `Enrolled as ${request.hostname} with agent ${request.agent_version}`,
      details: { serial: signed.serial, boot_id: request.boot_id, generation: node.generation },
    });
    await wakeWorkflows(tx, [waitKey.node(node.id)]);
    return { generation: node.generation, given: signed };
  });
  return answer(deps, request.node_id, generation, given);
}

/** Returns the enrollment token and its node, both locked until the end of the transaction. */
async function usableToken(
  tx: Tx,
  request: EnrollRequest,
  checked: CheckedRequest,
): Promise<{ token: EnrollmentToken; node: Node }> {
  // The hub locks the node before the token, like the workflow that replaces tokens, because two different lock orders can deadlock.
  const node = await lockNode(tx, request.node_id);
  const found = await lockToken(tx, tokenHash(request.token));
  if (found === null || found.token.revokedAt !== null) throw unknownToken();
  const { token, expired } = found;
  refuseOtherHost(token, request);
  if (token.usedAt !== null && token.usedKeySha256 !== checked.publicKeySha256) {
    throw new ApiError(
      "token_used",
      "The enrollment token was already used with another key. A token is valid for one host; an operator can start a new provisioning.",
    );
  }
  if (expired && token.usedAt === null)
    throw new ApiError(
      "token_expired",
      `The enrollment token expired at ${token.expiresAt.toISOString()}. ${
        // Only a workflow renews expired enrollment tokens.
        token.workflowId === null
          ? "Ask an operator for a new bootstrap command and run it on this host."
          : "It is renewed while the onboarding waits for this host; try again later."
      }`,
    );
  // After a reimage, the replaced operating system may still run with its old token and key, which are invalid in the new generation.
  if (node === null || node.status === "deleted" || token.generation !== node.generation) throw unknownToken();
  const use = await readKeyUse(tx, node.id, node.generation, checked.publicKeySha256);
  if (use === "revoked")
    throw new ApiError(
      "certificate_rejected",
      "The certificate of this key was revoked, so the token cannot be used for another one. An operator can re-enroll the node (re-enroll-node) or start a new provisioning.",
    );
  if (use === "over")
    throw new ApiError(
      "token_used",
      "The enrollment token was already used, and its certificate was renewed since then. If this host lost its identity, ask an operator to re-enroll the node (re-enroll-node).",
    );
  return { token, node };
}

function refuseOtherHost(token: EnrollmentToken, request: EnrollRequest): void {
  if (token.nodeId !== request.node_id)
    throw new ApiError(
      "token_of_another_node",
      `The enrollment token does not belong to node ${request.node_id}. Use the token that was issued for this node.`,
    );
  if (token.boundMacs.length > 0 && !token.boundMacs.some((mac) => request.macs.includes(mac)))
    throw new ApiError(
      "token_of_another_node",
      "The enrollment token is bound to the NICs of another machine: this host has none of them.",
    );
}

/**
 * Issues a new certificate in the node's present generation, for a caller whose certificate was just accepted (see `authenticate`). `renew` checks
 * the caller's certificate a second time while the node's row is locked. A revocation takes the same lock as a renewal, so no renewed certificate
 * survives a revocation. A renewed certificate replaces the node's present certificate when the renewed one is first used. If a host repeats its
 * renewal with the same key before it uses the renewed certificate, the hub sends the renewed certificate once more (decision I1).
 */
export async function renew(
  deps: EnrollDependencies,
  caller: AuthenticatedNode,
  readCsr: () => Promise<string>,
  named: number | null,
): Promise<EnrollResponse> {
  const { nodeId, generation, serial } = caller;
  const request = async () => deps.ca.checkRequest(await readCsr(), nodeId);
  if (caller.replaced) throw await refusalOfSuccessor(deps, caller, request);
  // A renewal request with an invalid certificate does not use up the budget of the host that has the valid certificate.
  deps.guard.asks(nodeId, "renewal");
  const checked = await request();
  // An agent of version 0.2 or older names no generation in its renewal.
  const agent = { node_id: nodeId, generation: named ?? generation };
  if (caller.lost !== undefined && !(await fitsGeneration(deps, agent, caller)))
    throw new ApiError(
      "certificate_rejected",
      "The client certificate is not accepted: the hub's database was restored from a backup that does not know the host's generation. Ask an operator for a new command, and run it on this host.",
    );
  const key = checked.publicKeySha256;
  const signed = await deps.ca.signNode(nodeId, checked);
  const given = await deps.inTx(async (tx) => {
    const node = await lockNode(tx, nodeId);
    if (node === null || node.status === "deleted") throw nodeDeleted();
    if (node.generation !== generation)
      throw new ApiError(
        "certificate_rejected",
        "The client certificate is not accepted: the node was provisioned again since then; enroll with the new token.",
      );
    if (await isVoid(tx, serial))
      throw new ApiError(
        "certificate_rejected",
        "The client certificate is not accepted: it was revoked or replaced during this request. Try again; an operator can re-enroll the node (re-enroll-node).",
      );
    const unused = await readUnused(tx, nodeId, generation, key);
    if (unused !== null) return unused;
    await keepCertificate(tx, certificateOf(node, signed));
    await recordNodeEvent(tx, {
      nodeId,
      type: "certificate_renewed",
      owner: "agent",
      message: "Certificate renewed",
      details: { serial: signed.serial, renewed_with: serial },
    });
    return signed;
  });
  return answer(deps, nodeId, generation, given);
}

/**
 * If a renewal comes with a replaced certificate, the hub checks whether a second host uses the node's identity, whatever the request contains. The
 * hub treats an unreadable renewal request like a request without a new key, so that an attacker cannot avoid the check for a second host.
 */
async function refusalOfSuccessor(
  deps: EnrollDependencies,
  caller: AuthenticatedNode,
  request: () => Promise<CheckedRequest>,
): Promise<ApiError> {
  const { nodeId, generation } = caller;
  const key = await request().then(
    ({ publicKeySha256 }) => publicKeySha256,
    () => null,
  );
  const isNew = key !== null && (await deps.inTx((tx) => readKeyUse(tx, nodeId, generation, key))) === "unknown";
  return judgeReplaced(deps, caller, isNew ? "successor_of_new_key" : "successor_of_known_key");
}

const certificateOf = (node: Node, signed: SignedNodeCertificate) => ({
  serial: signed.serial,
  nodeId: node.id,
  generation: node.generation,
  publicKeySha256: signed.publicKeySha256,
  notBefore: signed.notBefore,
  notAfter: signed.notAfter,
  pem: signed.pem,
});

const answer = (
  deps: EnrollDependencies,
  nodeId: NodeId,
  generation: number,
  given: Pick<SignedNodeCertificate, "pem" | "notAfter">,
): EnrollResponse => ({
  node_id: nodeId,
  generation,
  certificate_pem: given.pem,
  ca_pem: deps.ca.caPem,
  not_after: given.notAfter.toISOString(),
  task_signing_public_key: deps.signer.publicKey,
});
