import type { NodeId } from "../../../shared/ids.ts";
import { newestAttempts } from "../../db/queries/external-attempts.ts";
import { readReadiness } from "../../db/queries/node-readiness.ts";
import { lockNode } from "../../db/queries/nodes.ts";
import type { ExternalAttemptRow, Node } from "../../db/schema/index.ts";
import type { Db, Tx } from "../../db/tx.ts";
import { orderFirstBaseline } from "../baseline.ts";
import { moveNode } from "../move-node.ts";
import { readinessOf, toldLacking } from "../readiness-verdict.ts";
import { readinessFactsOf } from "../scheduling-facts.ts";
import { ATTEMPT_TABLE } from "./attempt-table.ts";
import { moveAndTell } from "./move-attempt.ts";

/** Returns what the node lacks to become ready, as sentences with the next action. */
export async function lackOfNode(db: Db | Tx, nodeId: NodeId): Promise<string[]> {
  const [row] = await readReadiness(db, [nodeId]);
  if (row === undefined) return [];
  const { lacking } = readinessOf(readinessFactsOf(row), row.conditions);
  return lacking.map((one) => `${toldLacking(one)}. ${one.nextAction}`);
}

/** The host of an external node has enrolled with its bootstrap token, so the node becomes `enrolling` and waits for its conditions. */
export async function enrollExternalNode(tx: Tx, node: Node): Promise<void> {
  if (node.onboardingMode !== "external" || node.status !== "bootstrap_issued") return;
  const move = { from: "bootstrap_issued", to: "enrolling", owner: "onboarding" } as const;
  await moveNode(tx, node.id, move, "The host enrolled with its bootstrap token");
}

/**
 * Brings the node of an external system into service as soon as the provisioning of its host is completed and the node's conditions let it take work.
 * Only the node's conditions decide whether the node of an external system comes into service, and neither the external system nor an observed boot
 * does. The caller of `admitExternalNode` has not locked the node; a repeated call changes nothing.
 */
export async function admitExternalNode(tx: Tx, nodeId: NodeId): Promise<void> {
  const node = await lockNode(tx, nodeId);
  if (node?.onboardingMode !== "external") return;
  const attempt = (await newestAttempts(tx, [nodeId])).get(nodeId);
  if (attempt !== undefined) await completeIfReady(tx, node, attempt);
}

/** Returns the attempt as it is afterwards. The caller holds the node's row. */
export async function completeIfReady(tx: Tx, node: Node, attempt: ExternalAttemptRow): Promise<ExternalAttemptRow> {
  const effect = ATTEMPT_TABLE[attempt.state].ready;
  if (effect.kind !== "moved" || attempt.generation !== node.generation) return attempt;
  if (node.status !== "enrolling" && node.status !== "bootstrap_issued") return attempt;
  if ((await lackOfNode(tx, node.id)).length > 0) return attempt;
  const why = `${attempt.provisioner} has provisioned the host, and its conditions meet the readiness policy`;
  if (node.status === "bootstrap_issued")
    await moveNode(tx, node.id, { from: "bootstrap_issued", to: "enrolling", owner: "onboarding" }, why);
  await moveNode(tx, node.id, { from: "enrolling", to: "active", owner: "onboarding" }, why);
  if (node.runsAgent) await orderFirstBaseline(tx, node.id);
  return moveAndTell(tx, attempt, node, { to: effect.to, reason: why, isReport: false }, "hub");
}
