import type { MachineStatus } from "../../shared/api/instances.ts";
import type { NodeStatus } from "../../shared/node-status.ts";
import type { RecordVerdict } from "../../shared/sanitization-record.ts";

/** Something that changes the status of a machine, as its tables have it. */
export type HistoryEvent = { readonly at: Date } & (
  | { readonly what: "moved"; readonly to: NodeStatus; readonly message: string }
  | { readonly what: "tenancy_began"; readonly tenant: string }
  | { readonly what: "tenancy_ended" }
  | { readonly what: "sanitized"; readonly verdict: RecordVerdict }
);

export interface HistoryEntry {
  readonly status: MachineStatus;
  readonly at: Date;
  readonly message: string;
}

interface Standing {
  readonly node: NodeStatus | null;
  readonly isInUse: boolean;
}

const OF_NODE: Readonly<Record<NodeStatus, MachineStatus | null>> = {
  bootstrap_issued: "Initializing",
  enrolling: "Initializing",
  active: null,
  offline: "Error",
  quarantined: "Error",
  draining: "Maintenance",
  retired: "Maintenance",
  removing: "Maintenance",
  deleted: "Decommissioned",
};

/** A node in service is in use from the begin of a tenancy to its end, even while the host is cleaned. */
const shownOf = ({ node, isInUse }: Standing): MachineStatus | null =>
  node === null ? null : (OF_NODE[node] ?? (isInUse ? "InUse" : "Ready"));

/**
 * Returns the status history of a machine from what happened to it, the oldest event first. `Reset` comes from a sanitization record that says that the
 * host is clean, and from nothing else, so a host that lacks such a record never shows one.
 */
export function statusHistory(events: readonly HistoryEvent[]): HistoryEntry[] {
  const entries: HistoryEntry[] = [];
  let standing: Standing = { node: null, isInUse: false };
  for (const event of events) {
    standing = after(standing, event);
    const status = event.what === "sanitized" ? (event.verdict === "clean" ? "Reset" : null) : shownOf(standing);
    if (status === null || status === entries.at(-1)?.status) continue;
    // A cleaned host in use is not in use again only because its node moved back into service before the tenancy's end.
    if (status === "InUse" && entries.at(-1)?.status === "Reset" && event.what === "moved") continue;
    entries.push({ status, at: event.at, message: told(event) });
  }
  return entries;
}

function after(standing: Standing, event: HistoryEvent): Standing {
  switch (event.what) {
    case "moved":
      return { ...standing, node: event.to };
    case "tenancy_began":
      return { ...standing, isInUse: true };
    case "tenancy_ended":
      return { ...standing, isInUse: false };
    case "sanitized":
      return standing;
  }
}

function told(event: HistoryEvent): string {
  switch (event.what) {
    case "moved":
      return event.message;
    case "tenancy_began":
      return `Allocated to ${event.tenant}`;
    case "tenancy_ended":
      return "The tenancy ended";
    case "sanitized":
      return "A sanitization record says that the host is clean";
  }
}
