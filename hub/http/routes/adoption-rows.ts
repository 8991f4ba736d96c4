import type { z } from "zod";
import type { NodeAdoption as Answer } from "../../../shared/api/adoptions.ts";
import type { ConditionNow } from "../../db/queries/node-conditions.ts";
import type { NodeRow } from "../../db/queries/node-reads.ts";
import type { NodeAdoption } from "../../db/schema/index.ts";

export function toAdoption(
  row: NodeRow,
  adoption: NodeAdoption | null,
  conditions: readonly ConditionNow[],
): z.input<typeof Answer> | null {
  if (adoption === null) return null;
  return {
    adopted_by: adoption.adoptedBy,
    adopted_at: adoption.createdAt.toISOString(),
    profile_id: adoption.profileId,
    was_manual: adoption.wasManual,
    past_unknown: row.pastUnknown,
    differences: [...adoption.differences],
    next_action: nextAction(row, conditions),
  };
}

/**
 * The condition `adoption.identity` says what is missing until an adopted node is in service, or why the host that enrolled again is not the adopted
 * machine. The adoption keeps workloads off a node in service only while the past of the node's system is unknown.
 */
function nextAction({ node, pastUnknown }: NodeRow, conditions: readonly ConditionNow[]): string | null {
  const identity = conditions.find(({ type }) => type === "adoption.identity");
  const waits = node.status === "bootstrap_issued" || node.status === "enrolling";
  if ((waits || identity?.generation === node.generation) && identity !== undefined && identity.status !== "True")
    return identity.message;
  if (waits) return null;
  return node.status === "active" && pastUnknown
    ? "Reimage the node to give it a clean system and a residue baseline."
    : null;
}
