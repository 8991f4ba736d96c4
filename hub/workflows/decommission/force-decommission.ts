import { ApiError } from "../../../shared/api/errors.ts";
import { readOpenSession } from "../../db/queries/agent-sessions.ts";
import { forceDecommission, readDecommissionRows } from "../../db/queries/decommissions.ts";
import { isTerminal, lockWorkflow, patchState } from "../../db/queries/workflows.ts";
import type { Tx } from "../../db/tx.ts";
import { barUnerased } from "../../node/health-override.ts";
import { applyVerb, type VerbRequest } from "../engine/apply-verb.ts";
import type { Workflow } from "../engine/workflow.ts";
import { DecommissionInput } from "./decommission-context.ts";
import { lackOf, mayWaive, speaksOfDisks } from "./unerased.ts";

/**
 * By the command `force`, an operator overrides a decommission's wait for the agent (lifecycle 5.8). If no agent is connected, `force` continues the
 * operation without the agent. If an agent is connected, `force` replaces the present drain by a forced drain, which ends the remaining user
 * sessions. `force` also resumes a failed operation. The hub refuses `force` while a connected agent works on a task, because the operator then has
 * nothing to override. After `erase_unproven` and `erase_fell_back`, `force` continues the decommission without evidence of an erase. If an
 * operator's `force` continued a decommission without evidence of a disk erase, a health override keeps new work off the node (decision M9).
 */
export async function applyForce(
  tx: Tx,
  kinds: readonly Workflow[],
  request: Omit<VerbRequest, "verb">,
): Promise<void> {
  const row = await lockWorkflow(tx, request.workflowId);
  const rows = await readDecommissionRows(tx, request.workflowId);
  if (row === null || rows === null) throw new ApiError("not_found", `There is no decommission ${request.workflowId}.`);
  const { decommission, node } = rows;
  if (isTerminal(row.status) || row.status === "compensating")
    throw new ApiError("verb_not_allowed", `force is not possible while the decommission is ${row.status}.`);
  if (decommission.mode === "release" || decommission.mode === "reinstall")
    throw new ApiError(
      "verb_not_allowed",
      `A ${decommission.mode} waits for no agent of an old system, so there is nothing to force. Resume or cancel it.`,
    );
  if (decommission.mode === "soft_reset" || decommission.mode === "storage_cleanup")
    throw new ApiError(
      "verb_not_allowed",
      `Only the agent of ${decommission.hostname} can clean its host, so a ${decommission.mode} cannot be forced. Bring the agent back and resume, or cancel and drain the node.`,
    );
  const failed = row.status === "failed_retryable" || row.status === "failed_manual_intervention";
  if (decommission.forcedAt === null && !failed && (await readOpenSession(tx, node.id, node.generation)) !== null) {
    throw new ApiError(
      "verb_not_allowed",
      `The agent of ${decommission.hostname} is connected and at work, so there is nothing to force. Wait for it, or cancel.`,
    );
  }
  await forceDecommission(tx, decommission.decommissionId, request);
  const { erase } = DecommissionInput.parse(row.input);
  if (mayWaive(row.failureCode) && erase !== "none") {
    const { generation } = node;
    const patch = speaksOfDisks(row.failureCode)
      ? { disks_waived: generation, disks_waived_by: request.actor }
      : { erase_waived: generation, erase_waived_by: request.actor };
    await patchState(tx, row.id, patch);
    await barUnerased(tx, {
      nodeId: node.id,
      target: decommission.maasSystemId,
      reason: `${lackOf(row.failureCode)} (${erase}) in ${decommission.mode} ${row.id}, and a person forced it: ${request.reason}`,
      setBy: `operator:${request.actor}`,
      neededErase: erase,
    });
  }
  if (row.failureCode === "agent_outdated" && row.stage === "check_disks")
    await patchState(tx, row.id, { disks_unread: node.generation, disks_unread_by: request.actor });
  if (failed) await applyVerb(tx, kinds, { ...request, verb: "resume" });
}
