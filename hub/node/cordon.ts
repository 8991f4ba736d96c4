import type { NodeId } from "../../shared/ids.ts";
import { isNotNull, isNull, like, type SQL, sql } from "../db/orm.ts";
import { recordDomainEvent } from "../db/queries/domain-events.ts";
import { recordNodeEvent } from "../db/queries/node-events.ts";
import { setNodeCordon } from "../db/queries/nodes.ts";
import { nodes } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";

/**
 * The owner of a cordon (decision N1). An operation owns its cordon as long as it needs the cordon; a person's cordon stays until a person lifts it.
 */
export type CordonOwner = `operation:${string}` | `operator:${string}`;

export const isOperations = (owner: string | null): boolean => owner?.startsWith("operation:") === true;

/** Sets an operation's cordon on a node without a cordon; a cordon of another owner stays. */
export const cordonForOperation = (tx: Tx, nodeId: NodeId, operationId: string, reason: string): Promise<void> =>
  write(tx, nodeId, { owner: `operation:${operationId}`, reason }, isNull(nodes.cordonReason));

/**
 * Sets a person's cordon on a node, in place of any operation's or other person's cordon. A person's cordon does not end with an operation. A
 * repeated request for a cordon with the same owner and reason changes nothing.
 */
export const cordonForOperator = (tx: Tx, nodeId: NodeId, name: string, reason: string): Promise<void> => {
  const owner = `operator:${name}` as const;
  const differs = sql`(${nodes.cordonOwner}, ${nodes.cordonReason}) is distinct from (${owner}::text, ${reason}::text)`;
  return write(tx, nodeId, { owner, reason }, differs);
};

/** Lifts the cordon of an operation from a node; a person's cordon stays. */
export const uncordonOfOperation = (tx: Tx, nodeId: NodeId, reason: string): Promise<void> =>
  lift(tx, nodeId, "operation", reason, like(nodes.cordonOwner, "operation:%"));

/**
 * Lifts a person's cordon from a node, whoever has set the cordon. The caller of `uncordonForOperator` has checked that a person, and not an
 * operation, has set the cordon.
 */
export const uncordonForOperator = (tx: Tx, nodeId: NodeId, name: string, reason: string): Promise<void> =>
  lift(tx, nodeId, `operator:${name}`, reason, isNotNull(nodes.cordonReason));

async function write(
  tx: Tx,
  nodeId: NodeId,
  { owner, reason }: { readonly owner: CordonOwner; readonly reason: string },
  where: SQL,
): Promise<void> {
  await change(tx, nodeId, { cordonReason: reason, cordonOwner: owner }, where, { by: owner, reason });
}

async function lift(tx: Tx, nodeId: NodeId, by: string, reason: string, where: SQL | undefined): Promise<void> {
  await change(tx, nodeId, { cordonReason: null, cordonOwner: null }, where, { by, reason });
}

async function change(
  tx: Tx,
  nodeId: NodeId,
  set: { readonly cordonReason: string | null; readonly cordonOwner: CordonOwner | null },
  where: SQL | undefined,
  { by, reason }: { readonly by: string; readonly reason: string },
): Promise<void> {
  const node = await setNodeCordon(tx, nodeId, set, where);
  if (node === null) return;
  const cordoned = set.cordonReason !== null;
  await recordNodeEvent(tx, { nodeId, type: cordoned ? "cordoned" : "uncordoned", owner: by, message: reason });
  await recordDomainEvent(tx, {
    type: "node.cordon.changed",
    subject: `nodes/${nodeId}`,
    data: { node_id: nodeId, hostname: node.hostname, cordoned, by, reason },
  });
}
