import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { api, read } from "../../api/client.ts";
import { question } from "../../api/query-client.ts";
import type { Answer } from "../../api/schema.ts";
import { useMay } from "../../api/session.ts";
import { useSites } from "../../api/sites.ts";
import { type Column, DataTable } from "../../parts/data-table.tsx";
import { DriftLink, NodesLink, SiteLink } from "../../parts/links.tsx";
import { PageHead, Section } from "../../parts/page-head.tsx";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { Answered, Empty } from "../../parts/states.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { counted, words } from "../../parts/tones.ts";

type Row = Answer<"getReconciliationStatus">["sites"][number];

const status = question(["sites", "nodes"], ["reconciliation"], (signal) =>
  read(api.GET("/api/v1/admin/reconciliation/status", { signal })),
);

/** Lists the sites of the hub, and how well the hub can watch each site's MAAS. */
export function Page(): ReactNode {
  const may = useMay();
  const query = useQuery(status);
  return (
    <>
      <PageHead
        title="Sites"
        below="A site is one MAAS region with its hosts."
        actions={
          may("configure_sites") ? (
            <Button renderRoot={(props) => <Link to="/sites/new" {...props} />}>Add a site</Button>
          ) : null
        }
      />
      <Answered query={query} what="the sites">
        {({ sites }) => (sites.length === 0 ? <FirstSite /> : <Sites rows={sites} />)}
      </Answered>
    </>
  );
}

const FirstSite = (): ReactNode => (
  <Empty title="Add the first site" kind="none">
    <p>
      Muster works with the MAAS region of each site. You need the region's address, an API key of a MAAS administrator,
      and the login of the hosts' BMCs. Then come a profile, the SKUs, and the hosts.
    </p>
    <Button renderRoot={(props) => <Link to="/sites/new" {...props} />}>Add a site</Button>
  </Empty>
);

function Sites({ rows }: { readonly rows: readonly Row[] }): ReactNode {
  const known = useSites();
  const columns: readonly Column<Row>[] = [
    { id: "name", head: "Site", cell: ({ site_id: id, name }) => <SiteLink id={id}>{name}</SiteLink> },
    { id: "status", head: "Status", cell: (row) => <StatusBadge status={row.status} /> },
    { id: "watch", head: "MAAS", cell: (row) => <Watch row={row} /> },
    { id: "look", head: "Last look", wide: true, cell: ({ last_look_at: at }) => <RelativeTime at={at} /> },
    {
      id: "nodes",
      head: "Nodes",
      align: "end",
      cell: ({ site_id: id, ...row }) => (
        <NodesLink search={{ site_id: id }}>{row.ok + row.drifted + row.acknowledged + row.unreconciled}</NodesLink>
      ),
    },
    {
      id: "drifted",
      head: "Differ from MAAS",
      align: "end",
      cell: ({ drifted, site_id }) => <DriftLink search={{ site_id }}>{drifted}</DriftLink>,
    },
    { id: "breakers", head: "Breakers", cell: (row) => <Breakers row={row} /> },
    {
      id: "address",
      head: "Region",
      wide: true,
      cell: ({ site_id: id }) => <code>{known.get(id)?.api_base_url ?? "-"}</code>,
    },
  ];
  return (
    <Section title="All sites">
      <DataTable label="The sites" columns={columns} rows={rows} rowKey={({ site_id: id }) => id} />
    </Section>
  );
}

const Watch = ({ row }: { readonly row: Row }): ReactNode =>
  row.last_error_code === null ? (
    <StatusBadge status="ok">answers</StatusBadge>
  ) : (
    <StatusBadge status="failed">
      {words(row.last_error_code)}, {counted(row.consecutive_failures, "time")}
    </StatusBadge>
  );

function Breakers({ row }: { readonly row: Row }): ReactNode {
  const open = row.breakers.filter(({ state }) => state !== "closed");
  if (open.length === 0) return "closed";
  return open.map(({ kind, state }) => (
    <StatusBadge key={kind} status={state}>
      {words(kind)} {state}
    </StatusBadge>
  ));
}
