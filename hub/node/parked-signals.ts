import { KEPT_OF_A_NODE, KEPT_WITHOUT_NODE } from "../db/kept.ts";
import {
  decideParked,
  expireParked,
  forgetOldReceived,
  lockWaiting,
  type WaitingPlace,
} from "../db/queries/received-signals.ts";
import { type FittingNode, fittingNodes, lockNodesOfSignals } from "../db/queries/signal-nodes.ts";
import type { ReceivedSignalRow } from "../db/schema/index.ts";
import type { InTx, Tx } from "../db/tx.ts";
import { apply, hasRoom, isOfSender, judgeNow } from "./take-signals.ts";

/** The largest number of waiting readiness signals that one transaction reads. */
const AT_ONCE = 500;
/** The largest number of transactions in one pass over the waiting readiness signals, enough to read as many signals as may wait for a node. */
const MOST_STEPS = KEPT_WITHOUT_NODE.parked / AT_ONCE;

/**
 * Applies the readiness signals that waited for a node and whose node now exists, and gives up those that have waited too long. A readiness signal
 * that fits several nodes continues to wait. Each pass reads all waiting readiness signals, because the nodes of the oldest ones may never appear.
 * Returns the number of waiting readiness signals that found their node.
 */
export async function applyParked(inTx: InTx): Promise<number> {
  await inTx(expireParked);
  let found = 0;
  let after: WaitingPlace | null = null;
  for (let steps = 0; steps < MOST_STEPS; steps += 1) {
    const from: WaitingPlace | null = after;
    const step: Step = await inTx((tx) => oneStep(tx, from));
    found += step.found;
    after = step.last;
    if (after === null) break;
  }
  return found;
}

interface Step {
  readonly found: number;
  /** The position of the last waiting readiness signal that the transaction has read; null if no further signal waits. */
  readonly last: WaitingPlace | null;
}

async function oneStep(tx: Tx, after: WaitingPlace | null): Promise<Step> {
  const waiting = await lockWaiting(tx, after, AT_ONCE);
  const end = waiting.at(-1);
  if (end === undefined) return { found: 0, last: null };
  const fitting = await fittingNodes(
    tx,
    waiting.map(({ signal }) => signal.named),
  );
  const nodes = await lockNodesOfSignals(tx, [...new Set([...fitting.values()].flat().map(({ id }) => id))]);
  let found = 0;
  for (const [place, { signal }] of waiting.entries()) {
    const own = (fitting.get(place) ?? []).filter((node) => nodes.has(node.id) && isOfSender(node, signal.senderSites));
    const node = own.length === 1 && own[0] !== undefined ? nodes.get(own[0].id) : undefined;
    if (node === undefined || isBefore(signal, node)) continue;
    await decide(tx, signal, node);
    found += 1;
  }
  return { found, last: waiting.length < AT_ONCE ? null : [end.at, end.signal.id] };
}

/**
 * A readiness signal without a generation waits while its node has generation 0, because the node's first installation, which would make the signal
 * void, has not begun.
 */
const isBefore = ({ generation }: ReceivedSignalRow, node: FittingNode): boolean =>
  generation === null && node.generation === 0;

async function decide(tx: Tx, row: ReceivedSignalRow, node: FittingNode): Promise<void> {
  const signal = { conditions: row.conditions, ...(row.generation === null ? {} : { generation: row.generation }) };
  const judged = await judgeNow(tx, signal, node, row.receivedAt);
  const about = { nodeId: node.id, siteId: node.siteId };
  if (judged.outcome === "applied" && !(await hasRoom(tx, node.id, judged))) {
    const detail = "the node has too many conditions of types that Muster does not know";
    await decideParked(tx, row.id, { ...about, outcome: "expired", detail });
    return;
  }
  await apply(tx, node, judged, row.receivedAt);
  await decideParked(tx, row.id, { ...about, outcome: judged.outcome, detail: judged.detail });
  await forgetOldReceived(tx, node.id, KEPT_OF_A_NODE.receivedSignals);
}
