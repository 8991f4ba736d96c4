import { ApiError } from "../../shared/api/errors.ts";
import type { AllocationId } from "../../shared/ids.ts";
import { setAllocationLabels } from "../db/queries/allocations.ts";
import type { AllocationRow } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";
import { tellChange } from "../node/allocation-moves.ts";
import { lockBoth } from "./lock-both.ts";

/**
 * Replaces the labels of an open allocation. Labels are only notes, so an operation that holds the node does not prevent a change of the labels.
 * Returns null if the allocation has changed since the version that the caller has seen.
 */
export async function changeLabels(
  tx: Tx,
  id: AllocationId,
  change: { readonly labels: AllocationRow["labels"]; readonly version: string; readonly actor: string },
): Promise<{ readonly prior: AllocationRow; readonly now: AllocationRow } | null> {
  const { allocation: prior } = await lockBoth(tx, id);
  if (prior.status === "ended")
    throw new ApiError("conflict", `Instance ${id} has ended, so its labels do not change any more.`, {
      context: { allocation_id: id },
    });
  const now = await setAllocationLabels(tx, id, change.labels, change.version);
  if (now === null) return null;
  await tellChange(tx, now, change.actor, "The labels were changed");
  return { prior, now };
}
