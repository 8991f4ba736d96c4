import { ApiError } from "../../shared/api/errors.ts";
import type { RepairId } from "../../shared/ids.ts";
import { openAllocationsOf } from "../db/queries/allocations.ts";
import { listNodeRows } from "../db/queries/node-reads.ts";
import { recordAfter } from "../db/queries/repair-checks.ts";
import { operationsOfNodes } from "../db/queries/workflow-subjects.ts";
import type { RepairCase } from "../db/schema/index.ts";
import type { Db, Tx } from "../db/tx.ts";
import { readinessOf, toldLacking } from "../node/readiness-verdict.ts";
import { readinessFactsOf } from "../node/scheduling-facts.ts";
import { contextOf, lockNodeAndCase, moveCase, notAllowed, noteOnCase } from "./move-case.ts";
import { type FailedCheck, failedChecks } from "./out-of-repair.ts";

/** Returns the checks that the repaired machine of a case has not passed. */
export async function checksOf(db: Db | Tx, row: RepairCase): Promise<FailedCheck[]> {
  const [found] = await listNodeRows(db, { id: row.nodeId }, { limit: 1, after: null });
  const holder = (await operationsOfNodes(db, [row.nodeId])).get(row.nodeId) ?? null;
  const lacking = found === undefined ? [] : readinessOf(readinessFactsOf(found), found.conditions).lacking;
  return failedChecks({
    mode: row.mode,
    nodeStatus: found?.node.status ?? null,
    heldBy: holder,
    allocation: (await openAllocationsOf(db, [row.nodeId])).get(row.nodeId)?.id ?? null,
    lacking: lacking.map((one) => `${toldLacking(one)}. ${one.nextAction}`),
    record: row.workedUntil === null ? null : await recordAfter(db, row.nodeId, row.workedUntil),
    validatedAt: row.validatedAt,
  });
}

interface By {
  readonly actor: string;
  readonly reason: string;
}

/**
 * Takes a repaired machine out of its repair. Throws `conflict` with every check that the machine has not passed, and what to do about each of them
 * (repair 5.1).
 */
export async function closeRepair(tx: Tx, id: RepairId, { actor, reason }: By): Promise<RepairCase> {
  const { row } = await lockNodeAndCase(tx, id);
  if (row.state !== "repaired") throw notAllowed(row, "close");
  const failed = await checksOf(tx, row);
  if (failed.length > 0)
    throw new ApiError(
      "conflict",
      `Node ${row.hostname} stays in repair ${id}: ${failed.map((one) => `${one.message} (${one.code}): ${one.next_action}`).join("; ")}.`,
      contextOf(row),
    );
  return moveCase(tx, row, "close", { entry: "closed", actor, message: reason });
}

/** Records what a test of a repaired machine showed. After a failed validation the machine counts as not repaired. */
export async function validateRepair(
  tx: Tx,
  id: RepairId,
  { actor, reason, result }: By & { readonly result: "passed" | "failed" },
): Promise<RepairCase> {
  const { row } = await lockNodeAndCase(tx, id);
  if (row.state !== "repaired") throw notAllowed(row, "validation");
  const about = { actor, message: reason, details: { result } } as const;
  if (result === "failed")
    return moveCase(
      tx,
      row,
      "refute",
      { entry: "validation_failed", ...about },
      { validatedAt: null, validatedBy: null },
    );
  const change = { now: "validatedAt", validatedBy: actor } as const;
  return noteOnCase(tx, row, { entry: "validation_passed", ...about }, change);
}
