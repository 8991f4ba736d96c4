import { KEPT_OF_A_NODE } from "../db/kept.ts";
import { decideParked, expireParked, forgetOldReceived, lockParked } from "../db/queries/received-signals.ts";
import { fittingNodes, lockNodesOfSignals } from "../db/queries/signal-nodes.ts";
import type { ReceivedSignalRow } from "../db/schema/index.ts";
import type { InTx, Tx } from "../db/tx.ts";
import { apply, hasRoom, isOfSender, judgeNow } from "./take-signals.ts";

/** The largest number of parked signals that one transaction looks at. */
const AT_ONCE = 500;

/**
 * Applies the parked signals whose node has appeared, and gives up those that have waited too long. A signal that several nodes fit stays parked.
 * Returns the number of signals that found their node.
 */
export const applyParked = (inTx: InTx): Promise<number> =>
  inTx(async (tx) => {
    await expireParked(tx);
    const parked = await lockParked(tx, AT_ONCE);
    if (parked.length === 0) return 0;
    const fitting = await fittingNodes(
      tx,
      parked.map(({ named }) => named),
    );
    const nodes = await lockNodesOfSignals(tx, [...new Set([...fitting.values()].flat().map(({ id }) => id))]);
    let found = 0;
    for (const [place, row] of parked.entries()) {
      const own = (fitting.get(place) ?? []).filter((node) => nodes.has(node.id) && isOfSender(node, row.senderSites));
      const node = own.length === 1 && own[0] !== undefined ? nodes.get(own[0].id) : undefined;
      if (node === undefined) continue;
      await decide(tx, row, node);
      found += 1;
    }
    return found;
  });

async function decide(tx: Tx, row: ReceivedSignalRow, node: Parameters<typeof judgeNow>[2]): Promise<void> {
  const signal = { conditions: row.conditions, ...(row.generation === null ? {} : { generation: row.generation }) };
  const judged = await judgeNow(tx, signal, node, true);
  const about = { nodeId: node.id, siteId: node.siteId };
  if (judged.outcome === "applied" && !(await hasRoom(tx, node.id, judged))) {
    const detail = "the node has too many conditions of types that Muster does not know";
    await decideParked(tx, row.id, { ...about, outcome: "expired", detail });
    return;
  }
  await apply(tx, node, judged);
  await decideParked(tx, row.id, { ...about, outcome: judged.outcome, detail: judged.detail });
  await forgetOldReceived(tx, node.id, KEPT_OF_A_NODE.receivedSignals);
}
