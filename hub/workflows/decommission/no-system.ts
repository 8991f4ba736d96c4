import { hasNoSystemSinceReinstall } from "../../db/queries/reinstalls.ts";
import { inFencedTx } from "../services.ts";
import type { DecommissionContext } from "./decommission-context.ts";

/**
 * True for a reimage of a host that has no system, because a reinstall took the old system away and deployed no other. A reimage of a host without a
 * system waits for no agent, because no agent can come, and the release of the machine with its erase follows in any case.
 */
export async function hasNoSystem(context: DecommissionContext): Promise<boolean> {
  if (context.decommission.mode !== "reimage") return false;
  return inFencedTx(context, (tx) => hasNoSystemSinceReinstall(tx, context.node));
}
