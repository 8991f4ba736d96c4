import { STATUS_OF_STATE } from "../../../shared/external-attempt.ts";
import { recordDomainEvent } from "../../db/queries/domain-events.ts";
import { type AttemptMove, moveAttempt } from "../../db/queries/external-attempts.ts";
import { recordNodeEvent } from "../../db/queries/node-events.ts";
import type { ExternalAttemptRow, Node } from "../../db/schema/index.ts";
import type { Tx } from "../../db/tx.ts";

/** Records a change of a provisioning attempt in the node's history and as a domain event. */
export async function tellAttempt(
  tx: Tx,
  { id, number, state, provisioner, reason, failureCode, generation }: ExternalAttemptRow,
  node: Pick<Node, "id" | "hostname" | "siteId">,
  owner: string,
): Promise<void> {
  const status = STATUS_OF_STATE[state];
  await recordNodeEvent(tx, {
    nodeId: node.id,
    type: "external_provisioning",
    owner,
    message: `Attempt ${number} of ${provisioner} is ${status}: ${reason}`,
    details: { attempt_id: id, number, status, generation },
  });
  await recordDomainEvent(tx, {
    type: "node.external_attempt.changed",
    subject: `nodes/${node.id}`,
    data: {
      attempt_id: id,
      node_id: node.id,
      hostname: node.hostname,
      site_id: node.siteId,
      number,
      provisioner,
      status,
      reason,
      ...(failureCode === null ? {} : { failure_code: failureCode }),
    },
  });
}

/** Moves a provisioning attempt by a compare-and-swap and records the change; a report that leaves the attempt's state as it is records no change. */
export async function moveAndTell(
  tx: Tx,
  attempt: ExternalAttemptRow,
  node: Pick<Node, "id" | "hostname" | "siteId">,
  move: Omit<AttemptMove, "from">,
  owner: string,
): Promise<ExternalAttemptRow> {
  const now = await moveAttempt(tx, attempt.id, { from: attempt.state, ...move });
  // Every change of a provisioning attempt needs the lock of the node's row, which the caller holds, so the attempt still has the state that the
  // caller has read.
  if (now === null) throw new Error(`attempt ${attempt.id} is not ${attempt.state} any more`);
  if (now.state !== attempt.state) await tellAttempt(tx, now, node, owner);
  return now;
}
