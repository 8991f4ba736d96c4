import type { NodeId } from "../../../shared/ids.ts";
import type { DecommissionMode } from "../../../shared/workflow-status.ts";
import { lockOpenAllocations } from "../../db/queries/allocations.ts";
import { nodesWithProfile } from "../../db/queries/decommissions.ts";
import { readBaselineLacks } from "../../db/queries/node-baselines.ts";
import type { BoundMachine } from "../../db/queries/node-machines.ts";
import type { AllocationRow } from "../../db/schema/index.ts";
import type { Tx } from "../../db/tx.ts";
import type { BaselineLack } from "../../node/baseline-lack.ts";

/** The facts that decide whether a decommission may begin on a node. */
export interface StartFacts {
  /** The node's open allocation, locked; null if the node has none. */
  readonly allocation: AllocationRow | null;
  readonly maasSystemId: string | null;
  readonly hasProfile: boolean;
  /** What the node's baseline, the snapshot of the clean host, lacks; null for a decommission whose mode needs no baseline. */
  readonly lack: BaselineLack;
}

interface FactsOfAll {
  readonly allocations: ReadonlyMap<NodeId, AllocationRow>;
  readonly machines: ReadonlyMap<NodeId, BoundMachine>;
  readonly profiles: ReadonlySet<NodeId>;
  readonly lacks: ReadonlyMap<NodeId, readonly string[]>;
}

/** Reads with a few SQL statements, for all nodes together, the facts that decide whether a decommission may begin. */
export async function readStartFacts(
  tx: Tx,
  ids: readonly NodeId[],
  mode: DecommissionMode,
  machines: ReadonlyMap<NodeId, BoundMachine>,
): Promise<FactsOfAll> {
  const compares = mode === "storage_cleanup" || mode === "soft_reset";
  return {
    machines,
    allocations: await lockOpenAllocations(tx, ids),
    profiles: await nodesWithProfile(tx, ids),
    lacks: compares ? await readBaselineLacks(tx, ids) : new Map(),
  };
}

export const factsOf = ({ allocations, machines, profiles, lacks }: FactsOfAll, id: NodeId): StartFacts => ({
  allocation: allocations.get(id) ?? null,
  maasSystemId: machines.get(id)?.maasSystemId ?? null,
  hasProfile: profiles.has(id),
  lack: lacks.get(id) ?? null,
});
