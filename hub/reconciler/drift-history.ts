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

/** How a drift ended: it is over, another drift took its place, a person acknowledged it, or a person vouched for the node. */
export type DriftEnd = "healed" | "replaced" | "acknowledged" | "returned_to_service";
const WORDS: Readonly<Record<DriftEnd, string>> = {
  healed: "is over: the node and its machine in MAAS agree again",
  replaced: "is no longer the most urgent drift of the node",
  acknowledged: "is acknowledged by a person",
  returned_to_service: "is over: a person returned the node to service",
};

/** A person who ended a drift, and why. */
export interface Person {
  readonly by: string;
  readonly reason: string;
}

/** Writes into a node's history how a drift ended; `person` is who ended it, and null for the reconciler. */
export const recordDriftEnd = (
  tx: Tx,
  nodeId: NodeId,
  rule: Rule,
  { how, person }: { readonly how: DriftEnd; readonly person: Person | null },
): Promise<void> =>
  recordNodeEvent(tx, {
    ...{ nodeId, type: "drift", owner: person === null ? "reconciler" : `operator:${person.by}` },
    message: `${rule} ${WORDS[how]}${person === null ? "" : `: ${person.reason}`}`.slice(0, 1_000),
    details: { rule, state: how },
  });
