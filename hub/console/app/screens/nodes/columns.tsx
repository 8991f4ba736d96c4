import type { ReactNode } from "react";
import type { Column } from "../../parts/data-table.tsx";
import { NodeLink, NodesLink } from "../../parts/links.tsx";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { words } from "../../parts/tones.ts";
import type { NodeRow } from "./node-questions.ts";

export interface NodeColumn extends Column<NodeRow> {
  /** True for a column that the list of nodes shows by default, if the URL names no columns. */
  readonly usual: boolean;
}

const place = ({ location: { room, rack, unit } }: NodeRow): string =>
  [room, rack, unit === null ? null : `U${unit}`].filter((part) => part !== null).join(" / ") || "-";

const Schedulable = ({ node }: { readonly node: NodeRow }): ReactNode =>
  node.schedulable ? (
    <StatusBadge status="ok">yes</StatusBadge>
  ) : (
    <span title={node.unschedulable_reasons.join("\n")}>
      <StatusBadge status="no" tone="over">
        no
      </StatusBadge>{" "}
      {node.unschedulable_reasons[0] ?? ""}
    </span>
  );

/** All columns of the list of nodes, in display order. */
export const nodeColumns = (siteName: (id: string | null) => string): readonly NodeColumn[] => [
  {
    id: "hostname",
    head: "Host",
    sort: "hostname",
    usual: true,
    cell: ({ id, hostname }) => <NodeLink id={id}>{hostname}</NodeLink>,
  },
  { id: "status", head: "Status", sort: "status", usual: true, cell: ({ status }) => <StatusBadge status={status} /> },
  { id: "schedulable", head: "Schedulable", usual: true, cell: (node) => <Schedulable node={node} /> },
  {
    id: "site",
    head: "Site",
    usual: true,
    wide: true,
    cell: ({ site_id: id }) => (id === null ? "-" : <NodesLink search={{ site_id: id }}>{siteName(id)}</NodesLink>),
  },
  { id: "location", head: "Room / rack / unit", sort: "location", usual: true, wide: true, cell: place },
  { id: "sku", head: "SKU", sort: "sku_id", usual: true, wide: true, cell: ({ sku_id: sku }) => sku },
  { id: "tenant", head: "Tenant", usual: true, wide: true, cell: ({ allocation }) => allocation?.tenant ?? "-" },
  {
    id: "contact",
    head: "Agent heard",
    sort: "last_agent_contact_at",
    usual: true,
    wide: true,
    cell: ({ last_agent_contact_at: at }) => <RelativeTime at={at} />,
  },
  { id: "address", head: "Address", usual: false, wide: true, cell: ({ host }) => <code>{host ?? "-"}</code> },
  { id: "gpus", head: "GPUs", usual: false, align: "end", wide: true, cell: ({ gpus_total: gpus }) => gpus },
  { id: "cordon", head: "Cordon", usual: false, wide: true, cell: ({ cordon_reason: reason }) => reason ?? "-" },
  { id: "agent", head: "Agent", usual: false, wide: true, cell: ({ agent_version: version }) => version ?? "-" },
  { id: "maas", head: "MAAS id", usual: false, wide: true, cell: ({ maas_system_id: id }) => <code>{id ?? "-"}</code> },
  { id: "mode", head: "Mode", usual: false, wide: true, cell: ({ onboarding_mode: mode }) => words(mode) },
  {
    id: "created",
    head: "Created",
    sort: "created_at",
    usual: false,
    wide: true,
    cell: ({ created_at: at }) => <RelativeTime at={at} />,
  },
  {
    id: "updated",
    head: "Changed",
    sort: "updated_at",
    usual: false,
    wide: true,
    cell: ({ updated_at: at }) => <RelativeTime at={at} />,
  },
];

/**
 * Returns the columns that the URL names, or else the default columns. The column with the hostname is always shown, because it identifies the node
 * of a row.
 */
export const columnsOfSearch = (
  all: readonly NodeColumn[],
  named: readonly string[] | undefined,
): readonly NodeColumn[] =>
  all.filter(({ id, usual }) => id === "hostname" || (named === undefined ? usual : named.includes(id)));
