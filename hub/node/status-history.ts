import type { MachineStatus } from "../../shared/api/instances.ts";
import type { NodeStatus } from "../../shared/node-status.ts";
import type { RecordVerdict } from "../../shared/sanitization-record.ts";
import { type MachineFacts, machineStatusOf, type TenantUse } from "./machine-status.ts";

/** One recorded change of a node, of a tenant's use, of a cleaning or of a person's cordon. */
export type Change = { readonly at: Date; readonly message: string } & (
  | { readonly node: NodeStatus }
  | { readonly use: TenantUse }
  | { readonly cleaning: boolean }
  | { readonly cordoned: boolean }
);

export interface StatusEntry {
  readonly status: MachineStatus;
  readonly message: string;
  readonly at: Date;
}

const BEGIN: MachineFacts = {
  node: "bootstrap_issued",
  use: "none",
  cleaning: false,
  unhealthy: false,
  awayByRequest: false,
  cordoned: false,
};

/**
 * Replays the recorded changes of a node, and returns each change of its machine's status, oldest first. The history of a machine's status ignores
 * alerts, because the hub does not record which alerts prevented allocations in the past. Several changes at one moment count together as one, so
 * that each status in the history lasts for some time.
 */
export function statusHistory(changes: readonly Change[]): StatusEntry[] {
  const entries: StatusEntry[] = [];
  let facts = BEGIN;
  const sorted = [...changes].sort((a, b) => a.at.getTime() - b.at.getTime());
  for (const [index, change] of sorted.entries()) {
    const { at, message, ...said } = change;
    facts = { ...facts, ...said };
    if (sorted[index + 1]?.at.getTime() === at.getTime()) continue;
    const status = machineStatusOf(facts);
    if (entries.at(-1)?.status !== status) entries.push({ status, message, at });
  }
  return entries;
}

/** A cleaning after a tenant, as the hub has recorded it. */
export interface Cleaning {
  readonly operation: string;
  readonly beganAt: Date;
  /** Null while the operation runs. */
  readonly endedAt: Date | null;
  /** The sanitization record of the cleaning after a tenant; null if there is no such record. */
  readonly record: { readonly id: string; readonly verdict: RecordVerdict } | null;
}

/**
 * A cleaning that is over counts only if a sanitization record says that the host is clean. A finished cleaning without a record that says `clean`
 * does not appear as `Reset` in the machine's history for NICo, so that a client which looks for evidence of a cleaning finds none.
 */
export function changesOfCleaning({ operation, beganAt, endedAt, record }: Cleaning): Change[] {
  if (endedAt !== null && record?.verdict !== "clean") return [];
  const proof = record === null ? "no sanitization record yet" : `sanitization record ${record.id}: ${record.verdict}`;
  const began: Change = { at: beganAt, cleaning: true, message: `Operation ${operation} cleans the host; ${proof}` };
  return endedAt === null
    ? [began]
    : [began, { at: endedAt, cleaning: false, message: `Operation ${operation} is over; ${proof}` }];
}

/** A tenant's use of the node. */
export interface Use {
  readonly id: string;
  readonly tenant: string;
  readonly beganAt: Date;
  /** The time when somebody ordered the operation that cleans the node after the tenant's use; null if it is not ordered yet. */
  readonly endingAt: Date | null;
  readonly endedAt: Date | null;
}

export function changesOfUse({ id, tenant, beganAt, endingAt, endedAt }: Use): Change[] {
  const changes: Change[] = [{ at: beganAt, use: "open", message: `Instance ${id} of the tenant ${tenant}` }];
  if (endingAt !== null) changes.push({ at: endingAt, use: "ending", message: `Instance ${id} is ending` });
  if (endedAt !== null) changes.push({ at: endedAt, use: "none", message: `Instance ${id} has ended` });
  return changes;
}
