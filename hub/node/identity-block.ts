import { CLONE_EVIDENCE, type CloneEvidence } from "../../shared/identity.ts";
import type { NodeId } from "../../shared/ids.ts";
import { recordDomainEvent } from "../db/queries/domain-events.ts";
import { revokeEnrollmentTokens } from "../db/queries/enrollment-tokens.ts";
import { revokeCertificates } from "../db/queries/node-certificates.ts";
import { writeOwnCondition } from "../db/queries/node-conditions.ts";
import { recordNodeEvent } from "../db/queries/node-events.ts";
import {
  endIdentityBlock,
  endQuarantine,
  readIdentityBlock,
  writeIdentityBlock,
} from "../db/queries/node-identity-bars.ts";
import { lockNode } from "../db/queries/nodes.ts";
import { waitKey, wakeWorkflows } from "../db/queries/workflow-wakes.ts";
import type { Node } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";
import { moveNode } from "./move-node.ts";

export const WHAT_TO_DO =
  "Find the copy and shut it down. Then re-enroll the node (re-enroll-node) and run the command only on the right host, or onboard that host again.";

export interface CloneFound {
  readonly evidence: CloneEvidence;
  /** The boot ids, addresses and certificate serial numbers that prove that two hosts use one identity; the details never contain a secret. */
  readonly details: Readonly<Record<string, unknown>>;
}

/**
 * Makes a node's identity invalid for both hosts that use it, because the hub cannot know which host is the right one. If two hosts use the identity
 * of a node in service, the hub quarantines the node. A running onboarding of the node continues without the agent and fails by itself.
 * `blockIdentity` acts once for each generation of a node, and returns false if the generation's identity is already invalid.
 */
export async function blockIdentity(tx: Tx, nodeId: NodeId, generation: number, found: CloneFound): Promise<boolean> {
  const node = await lockNode(tx, nodeId);
  if (node === null || node.status === "deleted" || node.generation !== generation) return false;
  const before = await readIdentityBlock(tx, nodeId);
  if (before !== null && before.generation === generation) return false;
  const message = `Two hosts use this node's identity: ${CLONE_EVIDENCE[found.evidence]}. Both are blocked. ${WHAT_TO_DO}`;
  await revokeCertificates(tx, nodeId, "all", `two hosts used this node's identity. ${WHAT_TO_DO}`);
  await revokeEnrollmentTokens(tx, nodeId);
  const quarantined = await quarantine(tx, node, message);
  await writeIdentityBlock(tx, { nodeId, generation, ...found, quarantined });
  const details = { ...found.details, evidence: found.evidence, generation };
  await recordNodeEvent(tx, { nodeId, type: "duplicate_identity", owner: "identity", message, details });
  await writeOwnCondition(tx, node, { type: "agent.identity", status: "False", reason: "TwoUsers", message });
  await recordDomainEvent(tx, {
    type: "node.identity.barred",
    subject: `nodes/${nodeId}`,
    data: { node_id: nodeId, hostname: node.hostname, evidence: found.evidence, quarantined, message },
  });
  await wakeWorkflows(tx, [waitKey.node(nodeId)]);
  return true;
}

async function quarantine(tx: Tx, { id, status }: Node, message: string): Promise<boolean> {
  if (status !== "active" && status !== "offline") return false;
  return (await moveNode(tx, id, { from: status, to: "quarantined", owner: "identity" }, message)).moved;
}

/**
 * Records that a node has enrolled again after its identity became invalid because two hosts used it. After two hosts have used a node's identity,
 * only an operator or an onboarding can issue an enrollment token for the node.
 */
export async function healIdentity(tx: Tx, node: Node): Promise<void> {
  const block = await endIdentityBlock(tx, node.id, node.generation);
  if (block === null) return;
  const message = "The node enrolled again; the identity that two hosts used stays invalid for ever";
  await recordNodeEvent(tx, { nodeId: node.id, type: "identity_restored", owner: "identity", message });
  await writeOwnCondition(tx, node, { type: "agent.identity", status: "True", reason: "EnrolledAnew", message });
  await recordDomainEvent(tx, {
    type: "node.identity.restored",
    subject: `nodes/${node.id}`,
    data: { node_id: node.id, hostname: node.hostname, evidence: block.evidence },
  });
}

/**
 * Ends the quarantine of a node whose identity two hosts used, when the agent that enrolled again is connected (decision N4).
 * `liftIdentityQuarantine` returns true if the quarantine has ended.
 */
export async function liftIdentityQuarantine(tx: Tx, node: Node): Promise<boolean> {
  if (node.status !== "quarantined" || !(await endQuarantine(tx, node.id))) return false;
  const message = "The agent that enrolled again is connected, so the cause of the quarantine is gone";
  return (await moveNode(tx, node.id, { from: "quarantined", to: "active", owner: "identity" }, message)).moved;
}
