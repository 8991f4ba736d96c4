import type { NodeId } from "../../shared/ids.ts";
import type { NodeStatus } from "../../shared/node-status.ts";
import { revokeEnrollmentTokens } from "../db/queries/enrollment-tokens.ts";
import { revokeCertificates } from "../db/queries/node-certificates.ts";
import { disownQuarantine } from "../db/queries/node-identity-bars.ts";
import { unbindNode, writeDrift } from "../db/queries/node-machines.ts";
import { lockNode, ownQuarantine, setNodeOperation } from "../db/queries/nodes.ts";
import type { Tx } from "../db/tx.ts";
import { cordonForOperation, uncordonOfOperation } from "./cordon.ts";
import { moveNode } from "./move-node.ts";

/**
 * The result of a function by which an operation changes a node's status, e.g. to `draining` (state model 3.2, decision N3). Each function that
 * changes a node's status locks the node's row and reads the status first. `adopted` means that the operation accepts the status that the node
 * already has. If a function refuses to change the node's status, `actual` is the node's present status, or null if the node does not exist.
 */
export type Step =
  | { readonly kind: "moved" | "adopted"; readonly status: NodeStatus }
  | { readonly kind: "refused"; readonly actual: NodeStatus | null };

export async function enterDraining(tx: Tx, nodeId: NodeId, operationId: string, reason: string): Promise<Step> {
  const node = await lockNode(tx, nodeId);
  switch (node?.status) {
    case "active":
    case "offline":
    case "quarantined":
      await moveNode(tx, nodeId, { from: node.status, to: "draining", owner: "admin_api", operationId }, reason);
      await cordonForOperation(tx, nodeId, operationId, reason);
      return { kind: "moved", status: "draining" };
    case "draining":
      await setNodeOperation(tx, nodeId, operationId);
      return { kind: "adopted", status: node.status };
    case "retired":
    case "removing":
    case "deleted":
      return { kind: "adopted", status: node.status };
    default:
      return { kind: "refused", actual: node?.status ?? null };
  }
}

export async function retire(tx: Tx, nodeId: NodeId, reason: string): Promise<Step> {
  const node = await lockNode(tx, nodeId);
  switch (node?.status) {
    case "draining":
      await moveNode(tx, nodeId, { from: "draining", to: "retired", owner: "drain" }, reason);
      return { kind: "moved", status: "retired" };
    case "retired":
    case "removing":
    case "deleted":
      return { kind: "adopted", status: node.status };
    default:
      return { kind: "refused", actual: node?.status ?? null };
  }
}

/**
 * A node whose drain was given up becomes `offline`, and the next report of its agent makes the node `active`. A node that was quarantined before the
 * drain becomes quarantined again, because nothing has proven the node healthy. Only the operation that owns a node's status `draining` may give up
 * the node's drain; a call for another operation changes nothing.
 */
export async function leaveDraining(
  tx: Tx,
  nodeId: NodeId,
  operationId: string,
  prior: NodeStatus,
  reason: string,
): Promise<boolean> {
  const node = await lockNode(tx, nodeId);
  if (node?.status !== "draining" || node.operationId !== operationId) return false;
  await moveNode(tx, nodeId, { from: "draining", to: "offline", owner: "drain" }, reason);
  if (prior === "quarantined")
    await moveNode(
      tx,
      nodeId,
      { from: "offline", to: "quarantined", owner: "cleanup" },
      "Back to its status before the drain",
    );
  // The hub no longer knows who quarantined the node before the drain, so only a person may end the quarantine (decision N4).
  if (prior === "quarantined") await ownQuarantine(tx, nodeId);
  await uncordonOfOperation(tx, nodeId, reason);
  return true;
}

/**
 * Sets a node's status to `enrolling` before a reimage releases the machine, so that no check judges the node by its old system (decision N2). A
 * reimage does not change the status of a node that is `enrolling` already.
 */
export async function enterReimage(tx: Tx, nodeId: NodeId, reason: string): Promise<void> {
  const node = await lockNode(tx, nodeId);
  if (node?.status !== "active" && node?.status !== "offline" && node?.status !== "quarantined") return;
  await moveNode(tx, nodeId, { from: node.status, to: "enrolling", owner: "reimage" }, reason);
}

/** Restores a person's quarantine after a reimage, because only a person lifts a person's quarantine (decision N4). */
export async function quarantineAgain(tx: Tx, nodeId: NodeId): Promise<void> {
  const node = await lockNode(tx, nodeId);
  if (node?.status !== "active" && node?.status !== "offline") return;
  const why = "A person had quarantined the node before its reimage";
  await moveNode(tx, nodeId, { from: node.status, to: "quarantined", owner: "operator" }, why);
}

/**
 * After a cancelled reimage or reinstall, a node that is still `enrolling` becomes `quarantined`, because its host has no system on which work may
 * run. The argument `then` of `leaveReimage` says what an operator does next.
 */
export async function leaveReimage(tx: Tx, nodeId: NodeId, reason: string, then: string): Promise<void> {
  const node = await lockNode(tx, nodeId);
  if (node?.status !== "enrolling") return;
  const why = `${reason}: ${then}`;
  await moveNode(tx, nodeId, { from: "enrolling", to: "quarantined", owner: "reimage" }, why);
}

/**
 * Ends the cordon of the operation that cleaned the node. With `endsQuarantine`, `returnCleanNode` also ends a quarantine that a cleanup set, because
 * the host is proven clean (decision N4). `returnCleanNode` never ends a quarantine that a person set, or that a part of the hub other than a cleanup
 * set.
 */
export async function returnCleanNode(
  tx: Tx,
  nodeId: NodeId,
  reason: string,
  { endsQuarantine }: { readonly endsQuarantine: boolean } = { endsQuarantine: true },
): Promise<Step> {
  const node = await lockNode(tx, nodeId);
  if (node?.status !== "active" && node?.status !== "offline" && node?.status !== "quarantined")
    return { kind: "refused", actual: node?.status ?? null };
  await uncordonOfOperation(tx, nodeId, reason);
  if (!endsQuarantine || node.status !== "quarantined" || node.quarantinedBy !== "cleanup")
    return { kind: "adopted", status: node.status };
  await moveNode(tx, nodeId, { from: "quarantined", to: "active", owner: "cleanup" }, "The host was found clean");
  return { kind: "moved", status: "active" };
}

/**
 * If a cancelled cleaning had already begun, the hub quarantines the node; the argument `then` is the last part of the recorded reason. A person or a
 * later successful cleaning ends the quarantine after a cancelled cleaning.
 */
export async function leaveCleaning(
  tx: Tx,
  nodeId: NodeId,
  begun: boolean,
  reason: string,
  then: string,
): Promise<void> {
  if (begun) await quarantineUnclean(tx, nodeId, `${reason}, so ${then}`);
  await uncordonOfOperation(tx, nodeId, reason);
}

/**
 * Quarantines a node in service whose host is not proven clean. If a part of the hub, such as the reconciler, has already quarantined the node,
 * `quarantineUnclean` makes `cleanup` the owner of the quarantine. Only a proof that the host is clean, or a person, ends a quarantine with the owner
 * `cleanup`. `quarantineUnclean` does not change the owner of a quarantine that a person set.
 */
export async function quarantineUnclean(tx: Tx, nodeId: NodeId, reason: string): Promise<void> {
  const node = await lockNode(tx, nodeId);
  if (node?.status === "quarantined" && node.quarantinedBy !== "operator") {
    await ownQuarantine(tx, nodeId, "cleanup");
    await writeDrift(tx, nodeId, { quarantined: false });
    await disownQuarantine(tx, nodeId);
  }
  if (node?.status !== "active" && node?.status !== "offline") return;
  await moveNode(tx, nodeId, { from: node.status, to: "quarantined", owner: "cleanup" }, reason);
}

/** After a node's return to service, the periodic search for silent agents decides whether the node is offline. */
export async function activate(tx: Tx, nodeId: NodeId, reason: string): Promise<Step> {
  const node = await lockNode(tx, nodeId);
  if (node?.status === "active") return { kind: "adopted", status: node.status };
  if (node?.status !== "retired") return { kind: "refused", actual: node?.status ?? null };
  await moveNode(tx, nodeId, { from: "retired", to: "active", owner: "operator" }, reason);
  await uncordonOfOperation(tx, nodeId, reason);
  return { kind: "moved", status: "active" };
}

export async function enterRemoving(tx: Tx, nodeId: NodeId, operationId: string, reason: string): Promise<Step> {
  const node = await lockNode(tx, nodeId);
  switch (node?.status) {
    case "retired":
      await moveNode(tx, nodeId, { from: "retired", to: "removing", owner: "remove", operationId }, reason);
      return { kind: "moved", status: "removing" };
    case "removing":
      await setNodeOperation(tx, nodeId, operationId);
      return { kind: "adopted", status: node.status };
    case "deleted":
      return { kind: "adopted", status: node.status };
    default:
      return { kind: "refused", actual: node?.status ?? null };
  }
}

/**
 * Gives up the removal of a node, after the uninstall of its agent failed or was cancelled. A node whose removal was given up keeps its identity and
 * its row (lifecycle 5.8).
 */
export async function leaveRemoving(tx: Tx, nodeId: NodeId, operationId: string, reason: string): Promise<boolean> {
  const node = await lockNode(tx, nodeId);
  if (node?.status !== "removing" || node.operationId !== operationId) return false;
  await moveNode(tx, nodeId, { from: "removing", to: "retired", owner: "remove" }, reason);
  return true;
}

/**
 * Ends a node: its certificates and tokens become invalid, its sessions are closed, and its id is never used again (state model 3.3). The machine of
 * a deleted node is free and may be onboarded as another node.
 */
export async function deleteNode(tx: Tx, nodeId: NodeId, operationId: string, reason: string): Promise<Step> {
  const entered = await enterRemoving(tx, nodeId, operationId, reason);
  if (entered.kind === "refused" || entered.status === "deleted") return entered;
  await revokeCertificates(tx, nodeId, "all", reason);
  await revokeEnrollmentTokens(tx, nodeId);
  await unbindNode(tx, nodeId);
  await moveNode(tx, nodeId, { from: "removing", to: "deleted", owner: "remove" }, reason);
  return { kind: "moved", status: "deleted" };
}
