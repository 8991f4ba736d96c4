import type { AllocationRow } from "../db/schema/index.ts";
import { afterFailedGrant } from "../node/judge-grant.ts";

/** Returns what an operator can do next about an allocation, or null if the allocation needs no operator. */
export function nextActionOf(
  row: Pick<AllocationRow, "status" | "errorCode" | "decommissionId" | "problem" | "keysDue">,
): string | null {
  if (row.problem !== null)
    return `The hub tries every few seconds to continue the allocation, and cannot: ${row.problem}`;
  if (row.status === "failed") {
    const late = row.keysDue ? " Until then, a key that was removed since may still be in the account." : "";
    return `${afterFailedGrant(row.errorCode)}${late}`;
  }
  if (row.status !== "ending") return null;
  return row.decommissionId === null
    ? "The node is cleaned as soon as it is in service and no operation holds it. Look at the node to see what it waits for."
    : `Look at decommission ${row.decommissionId}, which clears the node of the tenant.`;
}
