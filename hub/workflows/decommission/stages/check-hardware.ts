import { failure } from "../../../../shared/failures.ts";
import { readSku } from "../../../db/queries/skus.ts";
import type { Tx } from "../../../db/tx.ts";
import { checkFailure, judgeCheck, storeCheck } from "../../../node/hardware-check.ts";
import { UNKNOWN_TYPE } from "../../unknown-task-type.ts";
import type { AgentWork } from "../agent-work.ts";
import { cleaningStage } from "../cleaning-stage.ts";
import type { DecommissionStageOf } from "../decommission-context.ts";

/** How long the agent may take to inspect the hardware; after a reset, the inspection waits some minutes for NVLink. */
const CHECK_SECONDS = 900;

const CHECK: AgentWork<"node.check_hardware"> = {
  type: "node.check_hardware",
  undoneBy: null,
  input: () => ({}),
  workSeconds: () => CHECK_SECONDS,
  isAskedFor: () => true,
  failed: (context, task, evidence) =>
    failure(
      "hardware_mismatch",
      "hardware_unread",
      `The agent of ${context.node.hostname} did not tell its hardware: ${task.errorMessage ?? `the task is ${task.state}`}`,
      evidence,
    ),
  waitsFor: () => "The agent to look at the host's hardware",
};

/**
 * Compares the host with its SKU before the node takes the next tenant (decision H2). A GPU may have dropped off the PCI bus while a tenant used it
 * or when the cleaning reset it, and the operation's cordon stays until the host is complete again.
 */
export const checkHardware: DecommissionStageOf<"check_hardware"> = cleaningStage({
  name: "check_hardware",
  title: "Compare the host's hardware with its SKU",
  work: CHECK,
  nothingToDo: () => null,
  // An agent too old for the task `node.check_hardware` still sends inventories, by which the condition `hardware.sku` keeps new work off an
  // incomplete host after a soft reset.
  goOnAfter: (_context, task) =>
    task.errorCode === UNKNOWN_TYPE
      ? {
          kind: "done",
          message: "The agent is older than the hub and cannot look at the hardware; the node's conditions decide",
          details: { task_id: task.id },
        }
      : null,
  decide: async (context, result, task) => {
    const { node, services } = context;
    const sku = await readSku(services.db, node.sku);
    if (sku === null) {
      const message = `SKU ${node.sku} of ${node.hostname} is not known, so nothing says which hardware the host must have.`;
      return { kind: "failed", failure: failure("input_config_error", "sku_unknown", message, { sku_id: node.sku }) };
    }
    const check = judgeCheck(node, sku, result);
    const commit = (tx: Tx): Promise<void> => storeCheck(tx, node, result, check);
    const failed = checkFailure(node.hostname, sku.id, check, { node_id: node.id, task_id: task.id });
    if (failed !== null) return { kind: "failed", failure: failed, commit };
    return {
      kind: "done",
      message: "The host has what its SKU says, and is healthy",
      details: { task_id: task.id },
      commit,
    };
  },
});
