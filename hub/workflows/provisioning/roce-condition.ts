import { CONDITION_TYPES } from "../../../shared/condition-types.ts";
import { recordDomainEvent } from "../../db/queries/domain-events.ts";
import { removeConditions, writeOwnCondition } from "../../db/queries/node-conditions.ts";
import type { Tx } from "../../db/tx.ts";
import type { ProvisionContext } from "./context.ts";

/**
 * A message of the condition `network.roce` names at most `NAMED` RoCE rows (RDMA addresses of interfaces), and gives the number of all further rows.
 */
const NAMED = 16;

const list = (all: readonly string[]): string =>
  all.length <= NAMED ? all.join("; ") : `${all.slice(0, NAMED).join("; ")}; and ${all.length - NAMED} more`;

type RoceWord = { readonly status: "True" | "False"; readonly reason: string; readonly message: string };
const MISSING_BUT_ALLOWED = CONDITION_TYPES["network.roce"].tolerates;

function roceWord(state: ProvisionContext["state"], required: boolean): RoceWord | null {
  const { roce_assigned: assigned, roce_applied: applied, roce_warnings: warnings, roce_foreign: foreign } = state;
  if (assigned === null || assigned === undefined || assigned === 0) return null;
  const others = foreign?.length
    ? ` Muster did not change addresses that others set on the same interfaces: ${list(foreign)}.`
    : "";
  const set = `${applied ?? 0} of ${assigned} RoCE addresses are set.`;
  if (!warnings?.length) return { status: "True", reason: "AllSet", message: `${set}${others}` };
  return {
    status: "False",
    reason: required ? "AddressesMissing" : MISSING_BUT_ALLOWED,
    message: `${set} Not set: ${list(warnings)}. Correct the rows, the wiring or MAAS; the next onboarding or reimage of the host sets them.${others}`,
  };
}

/** Writes the condition `network.roce` for the node's new provisioning attempt, in place of the condition of the previous attempt. */
export async function tellRoce(
  tx: Tx,
  { state, profile, host, workflowId, operation }: ProvisionContext,
  node: Parameters<typeof writeOwnCondition>[1],
): Promise<void> {
  const word = roceWord(state, profile.roceRequired);
  if (word === null) {
    await removeConditions(tx, node.id, "network.roce");
    return;
  }
  await writeOwnCondition(tx, node, { type: "network.roce", ...word });
  if (word.status === "True") return;
  await recordDomainEvent(tx, {
    type: "node.roce.incomplete",
    subject: `nodes/${node.id}`,
    data: {
      node_id: node.id,
      hostname: host.hostname,
      onboarding_id: operation === "onboarding" ? workflowId : null,
      decommission_id: operation === "onboarding" ? null : workflowId,
      assignments: state.roce_assigned ?? 0,
      applied: state.roce_applied ?? 0,
      problems: (state.roce_warnings ?? []).slice(0, 32),
      bars_scheduling: profile.roceRequired,
    },
  });
}
