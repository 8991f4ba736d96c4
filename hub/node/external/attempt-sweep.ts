import type { NodeId } from "../../../shared/ids.ts";
import type { Log } from "../../../shared/log.ts";
import { type DueAttempt, findDueNodes, lockDueAttempt } from "../../db/queries/external-attempts.ts";
import { lockNode } from "../../db/queries/nodes.ts";
import type { Db, InTx, Tx } from "../../db/tx.ts";
import { periodically } from "../../timing/periodically.ts";
import { completeIfReady, lackOfNode } from "./admit-node.ts";
import { ATTEMPT_TABLE } from "./attempt-table.ts";
import { moveAndTell } from "./move-attempt.ts";

const EVERY_MS = 5_000;
/** The largest number of nodes that one query for due provisioning attempts returns. */
const AT_ONCE = 100;
/** The largest number of queries in one turn of the periodic check of provisioning attempts; the next turn begins at the first node again. */
const MOST_STEPS = 50;

export interface AttemptSweep {
  readonly db: Db;
  readonly inTx: InTx;
  readonly log: Log;
}

/**
 * Checks each provisioning attempt whose time limit has passed or whose node may have become ready, each in a transaction of its own, so that the
 * failure of one attempt does not stop the others. `sweepAttempts` ends each overdue wait of a provisioning attempt although no message arrives, and
 * completes an attempt whose node became ready by a report that did not complete the attempt itself. Returns the number of checked provisioning
 * attempts.
 */
export async function sweepAttempts({ db, inTx, log }: AttemptSweep): Promise<number> {
  let looked = 0;
  let after: NodeId | null = null;
  for (let steps = 0; steps < MOST_STEPS; steps += 1) {
    const due: readonly NodeId[] = await findDueNodes(db, AT_ONCE, after);
    for (const nodeId of due)
      try {
        looked += await inTx((tx) => look(tx, nodeId));
      } catch (error) {
        log.warn("an external attempt cannot continue; each sweep tries again", { node_id: nodeId, error });
      }
    after = due.at(-1) ?? null;
    if (due.length < AT_ONCE) break;
  }
  return looked;
}

/**
 * `look` checks the node's readiness before the deadline of the provisioning attempt, so that a node that became ready in time does not fail because
 * the check came late.
 */
async function look(tx: Tx, nodeId: NodeId): Promise<0 | 1> {
  const due = await lockDueAttempt(tx, nodeId);
  const node = due === null ? null : await lockNode(tx, nodeId);
  if (due === null || node === null) return 0;
  const { attempt: found, isLeaseOver, isDeadlineOver } = due;
  const attempt = await completeIfReady(tx, node, found);
  const passed = isDeadlineOver ? "deadline_passed" : isLeaseOver ? "lease_passed" : null;
  const effect = passed === null ? null : ATTEMPT_TABLE[attempt.state][passed];
  if (effect?.kind !== "moved") return 1;
  const { reason, failureCode } = await why(tx, attempt, effect.to);
  await moveAndTell(tx, attempt, node, { to: effect.to, reason, failureCode, isReport: false }, "hub");
  return 1;
}

async function why(
  tx: Tx,
  { nodeId, provisioner, heardAt, deadlineAt, step }: DueAttempt["attempt"],
  to: DueAttempt["attempt"]["state"],
): Promise<{ readonly reason: string; readonly failureCode: string }> {
  const last = step === null ? "" : ` It last reported: ${step}.`;
  if (to === "unverified")
    return {
      failureCode: "not_ready_in_time",
      reason: `The host was not ready by ${deadlineAt.toISOString()}. It lacks: ${(await lackOfNode(tx, nodeId)).join("; ")}`,
    };
  return to === "lost"
    ? {
        failureCode: "lease_expired",
        reason: `${provisioner} has not reported since ${heardAt.toISOString()}, and its lease is over.${last}`,
      }
    : {
        failureCode: "deadline_passed",
        reason: `${provisioner} has not reported the completion by the deadline ${deadlineAt.toISOString()}.${last}`,
      };
}

export const startAttemptSweep = (sweep: AttemptSweep) =>
  periodically({
    everyMs: EVERY_MS,
    turn: async () => {
      await sweepAttempts(sweep);
    },
    log: sweep.log,
    failed: "external attempts could not be looked at; the next sweep tries again",
  });
