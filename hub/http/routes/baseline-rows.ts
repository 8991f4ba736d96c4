import type { BaselineState } from "../../../shared/api/baselines.ts";
import { COMPARED_ITEMS } from "../../../shared/residue/items.ts";
import { ResidueSnapshot } from "../../../shared/residue/snapshot.ts";
import { isUnfinished } from "../../../shared/task-state.ts";
import type { BaselineWithTask } from "../../db/queries/node-baselines.ts";
import { isoOrNull } from "../../db/queries/workflow-views.ts";

const MISSING: Omit<BaselineState, "generation"> = {
  state: "missing",
  taken_at: null,
  boot_id: null,
  agent_version: null,
  missing_items: [],
  unreadable: [],
  requested_at: null,
  requested_by: null,
  reason: null,
  problem: null,
};

/**
 * `snapshotOf` returns null if the node's baseline, the state of its host before the first tenant, has no snapshot yet, or if this version of the hub
 * cannot parse the snapshot.
 */
export const snapshotOf = (row: BaselineWithTask | null): ResidueSnapshot | null =>
  ResidueSnapshot.safeParse(row?.baseline.snapshot ?? null).data ?? null;

export function toBaselineState(generation: number, row: BaselineWithTask | null): BaselineState {
  if (row === null) return { ...MISSING, generation };
  const { baseline, task } = row;
  const snapshot = snapshotOf(row);
  const problem =
    baseline.problem ?? (task === null || task.errorCode === null ? null : (task.errorMessage ?? task.errorCode));
  const isOpen = task !== null && (isUnfinished(task.state) || task.state === "succeeded");
  const waits = baseline.problem === null && isOpen && baseline.takenTaskId !== baseline.taskId;
  return {
    state: snapshot !== null ? "taken" : waits ? "requested" : "failed",
    generation,
    taken_at: isoOrNull(baseline.takenAt),
    boot_id: baseline.bootId,
    agent_version: baseline.agentVersion,
    missing_items: snapshot === null ? [] : COMPARED_ITEMS.filter((item) => snapshot[item] === undefined),
    unreadable: Object.entries(snapshot ?? {}).flatMap(([item, reading]) =>
      reading !== undefined && "unreadable" in reading ? [{ item, reason: reading.unreadable }] : [],
    ),
    requested_at: baseline.requestedAt.toISOString(),
    requested_by: baseline.requestedBy,
    reason: baseline.reason,
    problem,
  };
}
