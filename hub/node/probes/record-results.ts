import { conditionTypeOf, lifeSecondsOf } from "../../../shared/probes.ts";
import { writeProbeCondition } from "../../db/queries/node-conditions.ts";
import { type ClaimedProbe, lockProbedNodes, storeCount } from "../../db/queries/node-probes.ts";
import type { Tx } from "../../db/tx.ts";
import { admitExternalNode } from "../external/admit-node.ts";
import { countResult, type ProbeResult, toldResult } from "./probe-verdict.ts";

export interface MadeProbe {
  readonly claimed: ClaimedProbe;
  readonly result: ProbeResult;
}

/**
 * Writes the results of probes into the conditions of their nodes. A result is dropped if the node has another generation or address than at the claim, or
 * if the probe was claimed again, changed or ended since, because it would say something about another system. Returns the number of results that count.
 */
export async function recordResults(tx: Tx, made: readonly MadeProbe[]): Promise<number> {
  const nodes = await lockProbedNodes(tx, [...new Set(made.map(({ claimed }) => claimed.nodeId))]);
  let counting = 0;
  for (const { claimed, result } of [...made].sort(byNodeAndName)) {
    const node = nodes.get(claimed.nodeId);
    if (node === undefined || node.generation !== claimed.generation || node.host !== claimed.host) continue;
    const counted = countResult(claimed, result, claimed.probe);
    if (!(await storeCount(tx, claimed, counted))) continue;
    const told = { type: conditionTypeOf(claimed.probe), ...toldResult(counted, result, claimed.probe) };
    await writeProbeCondition(tx, node, told, lifeSecondsOf(claimed.probe));
    if (node.mayComeIntoService && told.status === "True") await admitExternalNode(tx, node.id);
    counting += 1;
  }
  return counting;
}

/** Rows are written in one order, so that two hubs do not wait for each other. */
const byNodeAndName = (a: MadeProbe, b: MadeProbe): number => {
  const [left, right] = [a, b].map(({ claimed }) => `${claimed.nodeId} ${claimed.probe.name}`) as [string, string];
  return left < right ? -1 : 1;
};
