import type { RepairId } from "../../shared/ids.ts";
import type { RepairCase } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";
import { endAccess } from "./end-attempt.ts";
import { lockNodeAndCase, moveCase } from "./move-case.ts";
import { mustBeFree } from "./must-be-free.ts";
import { mustHaveTenant } from "./open-repair.ts";
import { requestByPerson } from "./request-repair.ts";

interface By {
  readonly actor: string;
  readonly reason: string;
}

/** Requests a repair by hand, also while the fleet breaker holds automatic requests back. */
export async function requestRepair(
  tx: Tx,
  id: RepairId,
  by: By & { readonly evidence?: string | undefined },
): Promise<RepairCase> {
  const { row } = await lockNodeAndCase(tx, id);
  if (row.mode === "online") await mustHaveTenant(tx, row);
  else await mustBeFree(tx, row);
  return requestByPerson(tx, row, { ...by, evidence: by.evidence });
}

/**
 * Takes back a repair request that nobody has claimed. No repair attempt used the evidence of a withdrawn repair request, so a later request may name
 * the same evidence again.
 */
export async function withdrawRequest(tx: Tx, id: RepairId, { actor, reason }: By): Promise<RepairCase> {
  const { row } = await lockNodeAndCase(tx, id);
  const told = { entry: "request_withdrawn", actor, message: reason } as const;
  return moveCase(tx, row, "withdraw", told, { evidence: row.evidence.slice(0, -1) });
}

/**
 * Passes the repair of the machine to a person who works for the provider of the machines (escalation). The escalation of a repair ends a repair
 * attempt that is under way, and with it the claim and its access to the host.
 */
export async function escalateRepair(tx: Tx, id: RepairId, { actor, reason }: By): Promise<RepairCase> {
  const { row } = await lockNodeAndCase(tx, id);
  const ended = row.state === "claimed" ? ({ outcome: "manual", now: "workedUntil", claimUntil: null } as const) : {};
  const change = { ...ended, heldBack: null, validatedAt: null, validatedBy: null };
  const escalated = await moveCase(tx, row, "escalate", { entry: "escalated", actor, message: reason }, change);
  await endAccess(tx, row, { actor, reason: `Repair ${id}: ${reason}` });
  return escalated;
}
