import type { DriftDetails } from "../../shared/drift.ts";
import type { NodeId } from "../../shared/ids.ts";
import { recordNodeEvent } from "../db/queries/node-events.ts";
import type { Tx } from "../db/tx.ts";

type Rule = DriftDetails["rule"];

/** Writes into a node's history that the node differs from its machine in MAAS. */
export const recordDriftFound = (tx: Tx, nodeId: NodeId, { rule, severity, message }: DriftDetails): Promise<void> =>
  recordNodeEvent(tx, {
    ...{
      nodeId,
      type: "drift",
      owner: "reconciler",
      message: `found ${rule} (${severity}): ${message}`.slice(0, 1_000),
    },
    details: { rule, severity, state: "found" },
  });

/** How a drift ended: the node and its machine agree again, or a person has acknowledged the drift or vouched for the node. */
export type DriftEnd = "healed" | "acknowledged" | "returned_to_service";
const WORDS: Readonly<Record<DriftEnd, string>> = {
  healed: "is over: the node and its machine in MAAS agree again",
  acknowledged: "is acknowledged by a person",
  returned_to_service: "is over: a person returned the node to service",
};

export const recordDriftEnd = (tx: Tx, nodeId: NodeId, rule: Rule, how: DriftEnd): Promise<void> =>
  recordNodeEvent(tx, {
    ...{ nodeId, type: "drift", owner: how === "healed" ? "reconciler" : "operator", message: `${rule} ${WORDS[how]}` },
    details: { rule, state: how },
  });
