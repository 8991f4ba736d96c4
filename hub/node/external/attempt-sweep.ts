import type { NodeId } from "../../../shared/ids.ts";
import type { Log } from "../../../shared/log.ts";
import { type DueAttempt, lockDueAttempts } from "../../db/queries/external-attempts.ts";
import { lockNode } from "../../db/queries/nodes.ts";
import type { InTx, Tx } from "../../db/tx.ts";
import { periodically } from "../../timing/periodically.ts";
import { completeIfReady, lackOfNode } from "./admit-node.ts";
import { ATTEMPT_TABLE } from "./attempt-table.ts";
import { moveAndTell } from "./move-attempt.ts";

const EVERY_MS = 5_000;
/** The largest number of attempts that one transaction looks at. */
const AT_ONCE = 100;
/** The largest number of transactions in one turn; the next turn begins at the start again. */
const MOST_STEPS = 50;

/**
 * Looks at the attempts on which the clock or a node's conditions may act. The sweep makes every wait of an attempt end although no message arrives, and
 * completes an attempt whose node became ready by a report that told nobody. Returns the number of attempts that it looked at.
 */
export async function sweepAttempts(inTx: InTx): Promise<number> {
  let looked = 0;
  let after: NodeId | null = null;
  for (let steps = 0; steps < MOST_STEPS; steps += 1) {
    const from: NodeId | null = after;
    const due: readonly DueAttempt[] = await inTx((tx) => oneStep(tx, from));
    looked += due.length;
    after = due.at(-1)?.attempt.nodeId ?? null;
    if (due.length < AT_ONCE) break;
  }
  return looked;
}

async function oneStep(tx: Tx, after: NodeId | null): Promise<readonly DueAttempt[]> {
  const due = await lockDueAttempts(tx, AT_ONCE, after);
  for (const one of due) await look(tx, one);
  return due;
}

/** Readiness comes first, so that a node that became ready in time does not fail because the sweep came late. */
async function look(tx: Tx, { attempt: found, isLeaseOver, isDeadlineOver }: DueAttempt): Promise<void> {
  const node = await lockNode(tx, found.nodeId);
  if (node === null) return;
  const attempt = await completeIfReady(tx, node, found);
  const passed = isDeadlineOver ? "deadline_passed" : isLeaseOver ? "lease_passed" : null;
  if (passed === null) return;
  const effect = ATTEMPT_TABLE[attempt.state][passed];
  if (effect.kind !== "moved") return;
  const { reason, failureCode } = await why(tx, attempt, effect.to);
  await moveAndTell(tx, attempt, node, { to: effect.to, reason, failureCode, isReport: false }, "hub");
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

export const startAttemptSweep = ({ inTx, log }: { inTx: InTx; log: Log }) =>
  periodically({
    everyMs: EVERY_MS,
    turn: async () => {
      await sweepAttempts(inTx);
    },
    log,
    failed: "external attempts could not be looked at; the next sweep tries again",
  });
