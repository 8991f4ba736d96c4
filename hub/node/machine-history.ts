import type { CleaningOfNode, NodeChange, NodeHistories } from "../db/queries/machine-pages.ts";
import { type Change, changesOfCleaning, changesOfUse, type StatusEntry, statusHistory } from "./status-history.ts";

function changesOfNode({ type, toStatus, owner, message, occurredAt }: NodeChange): Change[] {
  const told = { at: occurredAt, message };
  if (type === "cordoned") return owner.startsWith("operator:") ? [{ ...told, cordoned: true }] : [];
  if (type === "uncordoned") return [{ ...told, cordoned: false }];
  return toStatus === null ? [] : [{ ...told, node: toStatus }];
}

const cleaningOf = ({ operation, beganAt, endedAt, recordId, verdict }: CleaningOfNode) => ({
  operation,
  beganAt,
  endedAt,
  record: recordId === null || verdict === null ? null : { id: recordId, verdict },
});

/** Returns the history of a machine's status from the records of its node, oldest entry first. */
export function historyOf(nodeId: string, records: NodeHistories): StatusEntry[] {
  const mine = <T extends { readonly nodeId: string }>(rows: readonly T[]): T[] =>
    rows.filter((one) => one.nodeId === nodeId);
  const changes = mine(records.changes);
  // The oldest events of a node may have been deleted, or be too many to read, so the history begins with the node's status before the oldest event
  // that is left. The machine's history leaves out a record from before the oldest event, such as an old allocation, because without the node's
  // status at that time the record would give a wrong history.
  const first = changes.find(({ toStatus }) => toStatus !== null);
  const before: Change[] =
    first === undefined || first.fromStatus === null
      ? []
      : [{ at: new Date(first.occurredAt.getTime() - 1), message: "Earlier history", node: first.fromStatus }];
  const [start] = before;
  const others = [
    ...mine(records.uses).flatMap(changesOfUse),
    ...mine(records.cleanings).map(cleaningOf).flatMap(changesOfCleaning),
  ].filter(({ at }) => start === undefined || at >= start.at);
  return statusHistory([...before, ...changes.flatMap(changesOfNode), ...others]);
}

/** True if the stored history of a node does not reach back to the node's creation. */
export const isCut = (nodeId: string, { changes }: NodeHistories): boolean =>
  changes.find((one) => one.nodeId === nodeId)?.type !== "created";
