import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import { api, read } from "../../api/client.ts";
import type { Answer } from "../../api/schema.ts";
import { useSiteName } from "../../api/sites.ts";
import type { Column } from "../../parts/data-table.tsx";
import { FilterSelect, Filters, SiteFilter } from "../../parts/filters.tsx";
import { NodeLink } from "../../parts/links.tsx";
import { LongList } from "../../parts/long-list.tsx";
import { PageHead } from "../../parts/page-head.tsx";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { Empty } from "../../parts/states.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { words } from "../../parts/tones.ts";
import { ResolveDrift } from "../../verbs/resolve-drift.tsx";
import classes from "./drift.module.css";
import { driftRoute, RULES, SEVERITIES } from "./route.ts";

type Row = Answer<"listDrift">["items"][number];
type Search = ReturnType<typeof driftRoute.useSearch>;

const PAGE = 100;
const choice = (value: string) => ({ value, label: words(value) });

const columnsOf = (siteName: (id: string | null) => string): readonly Column<Row>[] => [
  { id: "host", head: "Host", cell: ({ node_id: id, hostname }) => <NodeLink id={id}>{hostname}</NodeLink> },
  { id: "node", head: "Node", wide: true, cell: ({ node_status: status }) => <StatusBadge status={status} /> },
  {
    id: "severity",
    head: "Severity",
    cell: ({ drift_details: drift }) => (drift === null ? "-" : <StatusBadge status={drift.severity} />),
  },
  {
    id: "what",
    head: "What differs",
    cell: ({ drift_details: drift }) =>
      drift === null ? (
        "-"
      ) : (
        <span title={`${drift.message} ${drift.held_back ?? ""}`}>
          {words(drift.rule)}: {drift.message}
        </span>
      ),
  },
  { id: "site", head: "Site", wide: true, cell: ({ site_id: id }) => siteName(id) },
  {
    id: "since",
    head: "Since",
    wide: true,
    cell: ({ drift_details: drift }) => <RelativeTime at={drift?.detected_at ?? null} />,
  },
  { id: "verbs", head: "What to do", cell: (row) => <Standing row={row} /> },
];

const Standing = ({ row: { acknowledged, ...row } }: { readonly row: Row }): ReactNode =>
  acknowledged === null ? (
    <div className={classes.verbs}>
      <ResolveDrift
        nodeId={row.node_id}
        hostname={row.hostname}
        status={row.node_status}
        maasStatus={row.drift_details?.maas_status}
      />
    </div>
  ) : (
    <span title={acknowledged.reason}>acknowledged by {acknowledged.by}</span>
  );

/** Lists the nodes that differ from their machines in MAAS, the worst first, with what a person can do about each. */
export function Page(): ReactNode {
  const search = driftRoute.useSearch();
  const navigate = useNavigate({ from: "/drift" });
  const siteName = useSiteName();
  const columns = useMemo(() => columnsOf(siteName), [siteName]);
  const change = (changes: Partial<Search>): void =>
    void navigate({ search: (before) => ({ ...before, ...changes }), replace: true });
  const { known, ...filter } = search;
  const query = { ...filter, include_acknowledged: known ?? "false" } as const;
  const isFiltered = Object.values(filter).some((value) => value !== undefined);
  return (
    <>
      <PageHead title="Drift" below="Nodes that differ from their machines in MAAS." />
      <Filters onClear={isFiltered ? () => void navigate({ search: {} }) : undefined}>
        <SiteFilter value={search.site_id} onChange={(site_id) => change({ site_id })} />
        <FilterSelect
          label="Severity"
          value={search.severity}
          choices={SEVERITIES.map(choice)}
          onChange={(severity) => change({ severity: severity as Search["severity"] })}
        />
        <FilterSelect
          label="What differs"
          value={search.rule}
          choices={RULES.map(choice)}
          onChange={(rule) => change({ rule: rule as Search["rule"] })}
        />
        <FilterSelect
          label="Acknowledged"
          all="leave out"
          value={known}
          choices={[{ value: "true", label: "show too" }]}
          onChange={(value) => change({ known: value as Search["known"] })}
        />
      </Filters>
      <LongList<Row>
        what="drifted nodes"
        about={["nodes"]}
        listKey={["drift", query]}
        ask={(cursor, signal) =>
          read(
            api.GET("/api/v1/admin/reconciliation/drift", {
              params: { query: { ...query, limit: PAGE, cursor } },
              signal,
            }),
          )
        }
        columns={columns}
        rowKey={({ node_id: id }) => id}
        empty={
          <Empty title="No node is in this list" kind={isFiltered ? "filtered" : "none"}>
            Every node is as its machine in MAAS, or a person knows the difference already.
          </Empty>
        }
      />
    </>
  );
}
