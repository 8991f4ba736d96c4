import { conditionTypeOf } from "../../../shared/probes.ts";
import { tryLockUntilCommit } from "../../db/advisory-locks.ts";
import { removeProbeConditions, voidProbeConditions } from "../../db/queries/node-conditions.ts";
import {
  beginProbes,
  bringForward,
  deleteProbes,
  type PlannedChange,
  probesToChange,
} from "../../db/queries/node-probes.ts";
import type { InTx, Tx } from "../../db/tx.ts";

/** The largest number of probes that one transaction begins or ends. */
const AT_ONCE = 1_000;
/** The largest number of transactions in one turn; the next turn continues. */
const MOST_STEPS = 20;
/** The first probes of a changed profile do not all come at one moment, and none comes late. */
const SPREAD_SECONDS = 5;

const NOT_PROBED = {
  reason: "NotProbed",
  message:
    "The hub does not probe the host at present. It probes a host that is active or offline, and the host of an external system as soon as its provisioning is completed.",
};
const ANEW = {
  reason: "Probing",
  message:
    "The probe or the node's address has changed, so the earlier results do not count. The hub probes the host within seconds.",
};

/**
 * Makes the probes that the hubs make equal to those that the profiles list for the nodes in service. A profile, a node's profile, its generation and its
 * status change in many places, so a comparison finds what has changed, and no change can be forgotten. Returns the number of changes.
 */
export async function planProbes(inTx: InTx, atOnce = AT_ONCE): Promise<number> {
  await inTx(bringForward);
  let changed = 0;
  for (let steps = 0; steps < MOST_STEPS; steps += 1) {
    const step = await inTx((tx) => oneStep(tx, atOnce));
    changed += step;
    if (step < atOnce) break;
  }
  return changed;
}

async function oneStep(tx: Tx, atOnce: number): Promise<number> {
  if (!(await tryLockUntilCommit(tx, "probe_plan"))) return 0;
  const changes = await probesToChange(tx, atOnce);
  const begun = changes.filter((one) => one.kind === "begin");
  const ended = changes.filter((one) => one.kind === "end");
  await beginProbes(tx, begun, SPREAD_SECONDS);
  await deleteProbes(tx, ended);
  await voidProbeConditions(tx, begun.filter((one) => one.isAnew).map(typed), ANEW);
  await voidProbeConditions(tx, ended.filter((one) => one.isListed).map(typed), NOT_PROBED);
  await removeProbeConditions(tx, ended.filter((one) => !one.isListed).map(typed));
  return changes.length;
}

const typed = ({ nodeId, name }: PlannedChange) => ({ nodeId, type: conditionTypeOf({ name }) });
