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
import { waitKey, wakeWorkflows } from "../db/queries/workflow-wakes.ts";
import type { InTx, Tx } from "../db/tx.ts";
import type { Log } from "../log.ts";
import { periodically } from "../timing/periodically.ts";

const EVERY_MS = 5_000;
/** Without a look for so long no hub was there, or none could write: what was said meanwhile was heard by nobody. */
const OUTAGE_SECONDS = 30;

/** One transaction's worth. After an outage a whole fleet may fall silent at once, and agents write meanwhile. */
const AT_ONCE = 500;
/** So many transactions a look; the next look goes on. */
const MOST_STEPS = 20;

/**
 * Notices conditions whose life is over: tells it once, and wakes whoever waits on their nodes. That they are stale needs no look, as each reader sees it
 * by the clock. After a time in which no hub could hear anybody, what held before holds for the grace, so that agents can say it again first: nobody
 * is barred for the hub's own outage (decision F2). What was stale before stays stale. Each step is a transaction of its own, so a hub that dies, or
 * another one that looks as well, goes on where the last one ended.
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
  const until = await endOfStep(tx, atOnce);
  const stale = await newlyStale(tx, until);
  await recordNodeEvents(tx, stale.map(toNodeEvent));
  for (const condition of stale) await tell(tx, condition);
  await wakeWorkflows(tx, [...new Set(stale.map(({ nodeId }) => waitKey.node(nodeId)))]);
  await lookedUntil(tx, until);
  return { told: stale.length, more: until !== null };
}

const toNodeEvent = ({ nodeId, type, status, observedAt }: StaleCondition) =>
  ({
    nodeId,
    type: "condition_stale",
    owner: "hub",
    message: `${type} is unknown: nothing was heard of it since ${observedAt.toISOString()}, when it was ${status}`,
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
  /** Whether hosts can reach this hub at all: one that they cannot says nothing about who is silent. */
  readonly listens: () => boolean;
}

export function startConditionSweep({ inTx, log, graceMs, listens }: ConditionSweepOptions): {
  close(): Promise<void>;
} {
  const turn = async (): Promise<void> => {
    if (!listens()) return;
    const stale = await sweepConditions(inTx, graceMs);
    if (stale > 0) log.warn("conditions became stale", { count: stale });
  };
  return periodically({ everyMs: EVERY_MS, turn, log, failed: "the look for stale conditions failed" });
}
