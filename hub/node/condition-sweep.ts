import type { Log } from "../../shared/log.ts";
import {
  beginGrace,
  endOfStep,
  extendConditions,
  lockConditionWatch,
  lookedUntil,
  newlyStale,
  type StaleCondition,
} from "../db/queries/condition-watch.ts";
import { recordDomainEvent } from "../db/queries/domain-events.ts";
import { recordNodeEvents } from "../db/queries/node-events.ts";
import { newLapses } from "../db/queries/readiness-policies.ts";
import { waitKey, wakeWorkflows } from "../db/queries/workflow-wakes.ts";
import type { InTx, Tx } from "../db/tx.ts";
import { periodically } from "../timing/periodically.ts";
import { applyParked } from "./parked-signals.ts";
import { tellLapses } from "./readiness-lapses.ts";

const EVERY_MS = 5_000;
/**
 * The number of seconds without a search for expired conditions after which the hub assumes an outage of all hubs or of their database. During an
 * outage of all hubs, no hub receives the reports of agents.
 */
const OUTAGE_SECONDS = 30;

/**
 * The largest number of expired conditions that one transaction handles. After an outage of the hubs, the conditions of all nodes may expire at once,
 * while agents report new conditions.
 */
const AT_ONCE = 500;
/** The largest number of transactions in one periodic search for expired conditions; the next search handles the remaining conditions. */
const MOST_STEPS = 20;

/**
 * Finds expired conditions and passed time limits of readiness policies, reports each of them once, and wakes the workflows that wait on the node of
 * an expired condition. Code that reads a condition compares the condition's expiry time with the clock, and does not rely on the periodic search for
 * expired conditions. An outage of the hubs must keep no work off a node (decision F2). After an outage of the hubs, `sweepConditions` extends
 * conditions that were valid before the outage, so that agents have time to repeat their reports. Conditions that had expired before an outage of the
 * hubs stay expired. Each step of the periodic search for expired conditions is a transaction of its own, so any hub can continue after the last
 * committed step.
 */
export async function sweepConditions(inTx: InTx, graceMs: number, atOnce = AT_ONCE): Promise<number> {
  let told = 0;
  for (let steps = 0; steps < MOST_STEPS; steps += 1) {
    const step = await inTx((tx) => oneStep(tx, graceMs / 1000, atOnce));
    told += step.told;
    if (!step.more) break;
  }
  return told;
}

async function oneStep(tx: Tx, graceSeconds: number, atOnce: number): Promise<{ told: number; more: boolean }> {
  const watch = await lockConditionWatch(tx);
  const outage = watch !== null && watch.idleSeconds > OUTAGE_SECONDS;
  if (outage) await beginGrace(tx, graceSeconds);
  if (outage || watch?.inGrace === true) {
    await extendConditions(tx, graceSeconds, atOnce);
    return { told: 0, more: true };
  }
  const expiries = await endOfStep(tx, atOnce);
  const lapses = await newLapses(tx, expiries, atOnce);
  const until = lapses.length < atOnce ? expiries : (lapses.at(-1)?.at ?? expiries);
  const stale = await newlyStale(tx, until);
  await recordNodeEvents(tx, stale.map(toNodeEvent));
  for (const condition of stale) await tell(tx, condition);
  const lapsed = await tellLapses(tx, lapses);
  await wakeWorkflows(tx, [...new Set(stale.map(({ nodeId }) => waitKey.node(nodeId)))]);
  await lookedUntil(tx, until);
  return { told: stale.length + lapsed, more: until !== null };
}

const toNodeEvent = ({ nodeId, type, status, observedAt }: StaleCondition) =>
  ({
    nodeId,
    type: "condition_stale",
    owner: "hub",
    message: `${type} is unknown: its last report came at ${observedAt.toISOString()} and said ${status}`,
    details: { condition: type, status },
  }) as const;

const tell = (tx: Tx, { nodeId, hostname, type, status, observedAt }: StaleCondition): Promise<void> =>
  recordDomainEvent(tx, {
    type: "node.condition.stale",
    subject: `nodes/${nodeId}`,
    data: { node_id: nodeId, hostname, condition: type, was: status, heard_at: observedAt.toISOString() },
  });

interface ConditionSweepOptions {
  readonly inTx: InTx;
  readonly log: Log;
  readonly graceMs: number;
  /** Returns true if hosts can reach this hub, because a hub that no host can reach cannot know which hosts are silent. */
  readonly listens: () => boolean;
}

export function startConditionSweep({ inTx, log, graceMs, listens }: ConditionSweepOptions): {
  close(): Promise<void>;
} {
  const turn = async (): Promise<void> => {
    if (!listens()) return;
    const stale = await sweepConditions(inTx, graceMs);
    if (stale > 0) log.warn("conditions became stale", { count: stale });
    const found = await applyParked(inTx);
    if (found > 0) log.info("parked signals found their nodes", { count: found });
  };
  return periodically({ everyMs: EVERY_MS, turn, log, failed: "the sweep for stale conditions failed" });
}
