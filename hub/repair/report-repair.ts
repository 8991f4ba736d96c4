import { ApiError } from "../../shared/api/errors.ts";
import type { RepairReport } from "../../shared/api/repairs.ts";
import { hasRight } from "../../shared/api/rights.ts";
import type { ApiRole } from "../../shared/api/roles.ts";
import type { RepairId } from "../../shared/ids.ts";
import type { RepairCase } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";
import { type Claimant, isClaimant } from "./claim-repair.ts";
import { endAttempt } from "./end-attempt.ts";
import { contextOf, lockNodeAndCase, notAllowed } from "./move-case.ts";
import { incomplete } from "./release-for-repair.ts";

export type Reporter = Claimant & { readonly role: ApiRole };

/**
 * Takes the outcome of a repair attempt from whoever claimed the machine, or from an operator. An operator may also report that a machine was
 * repaired without a claim, for example by hand after an escalation.
 */
export async function reportRepair(tx: Tx, id: RepairId, by: Reporter, body: RepairReport): Promise<RepairCase> {
  const { row } = await lockNodeAndCase(tx, id);
  const mayOperate = hasRight(by.role, "operate_nodes");
  const { outcome, machine_health_issue: issue = null, reason } = body;
  if (row.state === "claimed") {
    if (!mayOperate && !isClaimant(row, by))
      throw new ApiError(
        "conflict",
        `Repair ${id} is claimed by ${row.claimedBy}, who alone reports it. Ask them, or an operator.`,
        contextOf(row),
      );
    return endAttempt(tx, row, { outcome, actor: by.name, message: reason, issue, finding: incomplete(outcome) });
  }
  if (outcome !== "completed" || issue !== null || !mayOperate)
    throw notAllowed(row, `report of the outcome ${outcome}`);
  return endAttempt(tx, row, { outcome, actor: by.name, message: reason, issue, finding: "" });
}
