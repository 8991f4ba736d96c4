import { maySay } from "../../shared/condition-types.ts";
import type { NodeId } from "../../shared/ids.ts";
import type { ForeignReadinessSignal, ReadinessSource, SignalOutcome } from "../../shared/readiness.ts";
import { withoutCredentials } from "../../shared/without-credentials.ts";
import { KEPT_OF_A_NODE } from "../db/kept.ts";
import { writeConditions, writeOwnCondition } from "../db/queries/node-conditions.ts";
import { forgetOldSignals, insertSignal } from "../db/queries/readiness-signals.ts";
import type { Tx } from "../db/tx.ts";

/**
 * Takes a readiness signal: once per id, and onto the conditions only when it is of the node's present generation (architecture 11). One of
 * another generation is kept and not applied, and so is a type that is not this source's to say, e.g. one of a newer agent. A condition observed earlier
 * than the one that is there does not replace it, unless that one is stale: a host's clock that was set back must not make its agent unheard.
 */
export async function applyReadinessSignal(
  tx: Tx,
  node: { id: NodeId; generation: number },
  source: ReadinessSource,
  signal: ForeignReadinessSignal,
): Promise<SignalOutcome> {
  const applied = signal.generation === node.generation;
  const told = signal.conditions.map((one) => ({ ...one, message: withoutCredentials(one.message) }));
  const fresh = await insertSignal(tx, {
    id: signal.signal_id,
    nodeId: node.id,
    generation: signal.generation,
    source,
    bootId: signal.boot_id ?? null,
    conditions: told,
    applied,
  });
  if (!fresh) return "known";
  await forgetOldSignals(tx, node.id, source, KEPT_OF_A_NODE.signals);
  if (!applied) return "kept";
  const conditions = told.filter(({ type }) => maySay(source, type));
  if (conditions.length > 0) await writeConditions(tx, node, source, conditions);
  return "applied";
}

/** Whether the channel is open is the hub's own knowledge; nobody else's word on it counts. */
export const writeConnected = (
  tx: Tx,
  node: { id: NodeId; generation: number },
  status: "True" | "False" | "Unknown",
  reason: string,
  message: string,
): Promise<void> => writeOwnCondition(tx, node, { type: "agent.connected", status, reason, message });
