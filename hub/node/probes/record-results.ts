import type { NodeId } from "../../../shared/ids.ts";
import type { Log } from "../../../shared/log.ts";
import { conditionTypeOf, lifeSecondsOf } from "../../../shared/probes.ts";
import { probesThatCount, writeProbeCondition } from "../../db/queries/node-conditions.ts";
import { type ClaimedProbe, lockProbedNodes, storeCount } from "../../db/queries/node-probes.ts";
import type { InTx, Tx } from "../../db/tx.ts";
import { admitExternalNode } from "../external/admit-node.ts";
import { countResult, type ProbeResult, toldResult, UNCOUNTED } from "./probe-verdict.ts";

export interface MadeProbe {
  readonly claimed: ClaimedProbe;
  readonly result: ProbeResult;
}

/** What has become of results. */
interface Recorded {
  /** The number of results that count. */
  readonly counting: number;
  /** The nodes of external systems that may come into service because their hosts have answered a probe. */
  readonly mayBeReady: readonly NodeId[];
}

/**
 * Writes the results of probes into the conditions of their nodes, and then brings each node into service that became ready by them. If the
 * transaction with all results fails, the hub writes each result in a transaction of its own, so that a fault with one node does not lose the results
 * of other nodes. Returns the number of results that count.
 */
export async function recordResults(
  { inTx, log }: { readonly inTx: InTx; readonly log: Log },
  made: readonly MadeProbe[],
): Promise<number> {
  const recorded = await inTx((tx) => writeResults(tx, made)).then(
    (all) => [all],
    (error: unknown) => {
      log.warn("results of probes could not be written together; each is now written by itself", { error });
      return oneByOne({ inTx, log }, made);
    },
  );
  for (const nodeId of new Set(recorded.flatMap((one) => one.mayBeReady)))
    await inTx((tx) => admitExternalNode(tx, nodeId)).catch((error: unknown) =>
      log.warn("a node could not come into service; the next result of its probe tries again", {
        node_id: nodeId,
        error,
      }),
    );
  return recorded.reduce((sum, { counting }) => sum + counting, 0);
}

async function oneByOne(
  { inTx, log }: { readonly inTx: InTx; readonly log: Log },
  made: readonly MadeProbe[],
): Promise<Recorded[]> {
  const recorded: Recorded[] = [];
  for (const one of made)
    try {
      recorded.push(await inTx((tx) => writeResults(tx, [one])));
    } catch (error) {
      const { nodeId, probe } = one.claimed;
      log.warn("the result of a probe could not be written; the next probe brings a new one", {
        node_id: nodeId,
        probe: probe.name,
        error,
      });
    }
  return recorded;
}

/**
 * The hub drops the result of a probe if, since the hub claimed the probe, the node's generation or address has changed, or the probe was claimed
 * again, changed or ended, because the result would be about another system. If the last result of a probe no longer counts, nobody knows what the
 * host has done since, so the count of results begins anew.
 */
async function writeResults(tx: Tx, made: readonly MadeProbe[]): Promise<Recorded> {
  const nodes = await lockProbedNodes(tx, [...new Set(made.map(({ claimed }) => claimed.nodeId))]);
  const counts = await probesThatCount(
    tx,
    made.map(({ claimed }) => ({ nodeId: claimed.nodeId, type: conditionTypeOf(claimed.probe) })),
  );
  const stillCounts = new Set(counts.map(({ nodeId, type }) => `${nodeId} ${type}`));
  const mayBeReady: NodeId[] = [];
  let counting = 0;
  for (const { claimed, result } of [...made].sort(byNodeAndName)) {
    const node = nodes.get(claimed.nodeId);
    if (node === undefined || node.generation !== claimed.generation || node.host !== claimed.host) continue;
    const type = conditionTypeOf(claimed.probe);
    const before = stillCounts.has(`${node.id} ${type}`) ? claimed : UNCOUNTED;
    const counted = countResult(before, result, claimed.probe);
    if (!(await storeCount(tx, claimed, counted))) continue;
    const told = { type, ...toldResult(counted, result, claimed.probe) };
    await writeProbeCondition(tx, node, told, lifeSecondsOf(claimed.probe));
    if (node.mayComeIntoService && result.kind === "passed" && told.status === "True") mayBeReady.push(node.id);
    counting += 1;
  }
  return { counting, mayBeReady };
}

/** Every hub writes probe results in the order of nodes and probe names, so that two hubs cannot deadlock. */
const byNodeAndName = (a: MadeProbe, b: MadeProbe): number => {
  const [left, right] = [a, b].map(({ claimed }) => `${claimed.nodeId} ${claimed.probe.name}`) as [string, string];
  return left < right ? -1 : 1;
};
