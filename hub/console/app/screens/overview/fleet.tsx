import type { ReactNode } from "react";
import { useSiteName } from "../../api/sites.ts";
import { type Column, DataTable } from "../../parts/data-table.tsx";
import { NodesLink } from "../../parts/links.tsx";
import { Section } from "../../parts/page-head.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { ToneBar } from "../../parts/tone-bar.tsx";
import { counted, toneOf, words } from "../../parts/tones.ts";
import { byPlace, byStatus, type PlaceCount, type StatusCount, schedulable, sum } from "./node-counts.ts";
import classes from "./overview.module.css";
import type { Overview } from "./overview-question.ts";

/** A bar that shows the share of each node status. A list below the bar of node statuses gives the number of nodes of each status. */
const Bar = ({ counts }: { readonly counts: readonly StatusCount[] }): ReactNode => (
  <div className={classes.bar}>
    <ToneBar shares={counts.map((one) => ({ ...one, tone: toneOf(one.status) }))} />
  </div>
);

export function FleetByStatus({ data }: { readonly data: Overview }): ReactNode {
  const counts = byStatus(data.nodes);
  return (
    <section className={classes.fleet} aria-label="Nodes by status">
      <h2 className={classes.fleetTitle}>
        <NodesLink search={{}}>{counted(sum(data.nodes), "node")}</NodesLink>
        <span className={classes.fleetAside}>
          <NodesLink search={{ schedulable: "true" }}>
            {schedulable(data.nodes).toLocaleString("en")} can take a tenant now
          </NodesLink>
        </span>
      </h2>
      <Bar counts={counts} />
      <ul className={classes.counts}>
        {counts.map(({ status, count }) => (
          <li key={status}>
            <NodesLink search={{ status: [status] }}>
              <span className={classes.count}>{count.toLocaleString("en")}</span> <StatusBadge status={status} />
            </NodesLink>
          </li>
        ))}
      </ul>
    </section>
  );
}

const columnsOf = (siteName: (id: string | null) => string): readonly Column<PlaceCount>[] => [
  {
    id: "site",
    head: "Site",
    cell: ({ siteId }) =>
      siteId === null ? "no site" : <NodesLink search={{ site_id: siteId }}>{siteName(siteId)}</NodesLink>,
  },
  {
    id: "sku",
    head: "SKU",
    cell: ({ skuId, siteId }) => (
      <NodesLink search={{ sku_id: [skuId], site_id: siteId ?? undefined }}>{skuId}</NodesLink>
    ),
  },
  { id: "nodes", head: "Nodes", align: "end", cell: ({ groups }) => sum(groups).toLocaleString("en") },
  { id: "free", head: "Schedulable", align: "end", cell: ({ groups }) => schedulable(groups).toLocaleString("en") },
  { id: "bar", head: "By status", wide: true, cell: ({ groups }) => <Bar counts={byStatus(groups)} /> },
  {
    id: "statuses",
    head: "In words",
    cell: ({ groups }) =>
      byStatus(groups)
        .map(({ status, count }) => `${count} ${words(status)}`)
        .join(", "),
  },
];

export function FleetByPlace({ data }: { readonly data: Overview }): ReactNode {
  const siteName = useSiteName();
  if (data.nodes.length === 0) return null;
  return (
    <Section title="By site and SKU">
      <DataTable
        label="Nodes by site and SKU"
        columns={columnsOf(siteName)}
        rows={byPlace(data.nodes)}
        rowKey={({ key }) => key}
      />
      {data.more_nodes > 0 ? <p className={classes.more}>{counted(data.more_nodes, "more group")} left out.</p> : null}
    </Section>
  );
}
