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
/** The largest number of transactions in one call of `planProbes`, which begins and ends probes; the next call makes the remaining changes. */
const MOST_STEPS = 20;
/** The first probes of a changed profile are spread over this time, so that they neither start all at one moment nor come late. */
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
 * Compares the probes that the hubs make with the probes that the profiles list for the nodes in service, and begins or ends probes until both agree.
 * Many parts of the hub change a profile, or a node's profile, generation or status, and need not tell `planProbes`, because its periodic comparison
 * finds every change. Returns the number of changes.
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
