import { maySay } from "../../shared/condition-types.ts";
import type { NodeId } from "../../shared/ids.ts";
import type { ForeignReadinessSignal, ReadinessSource, SignalOutcome } from "../../shared/readiness.ts";
import { withoutCredentials } from "../../shared/without-credentials.ts";
import { KEPT_OF_A_NODE } from "../db/kept.ts";
import { writeConditions, writeOwnCondition } from "../db/queries/node-conditions.ts";
import { forgetOldSignals, insertSignal } from "../db/queries/readiness-signals.ts";
import type { Tx } from "../db/tx.ts";

/**
 * Accepts a readiness signal once per id (architecture 11). The hub stores a readiness signal of an earlier or later generation than the node's
 * present one, but does not apply the signal's conditions. The hub does not apply a condition whose type the signal's source may not report, for
 * example a type of a newer agent. A condition with an older time does not replace a condition with a newer time, unless the newer condition has
 * expired. If an expired condition stayed, the hub would ignore an agent's reports after the host's clock was set back.
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

/**
 * Writes the condition `agent.connected`, which says whether the channel to an agent is open. The hub ignores what agents and external systems report
 * about `agent.connected`.
 */
export const writeConnected = (
  tx: Tx,
  node: { id: NodeId; generation: number },
  status: "True" | "False" | "Unknown",
  reason: string,
  message: string,
): Promise<void> => writeOwnCondition(tx, node, { type: "agent.connected", status, reason, message });
