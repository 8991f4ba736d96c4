import { useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { api, read } from "../../api/client.ts";
import type { Answer } from "../../api/schema.ts";
import type { Column } from "../../parts/data-table.tsx";
import { choicesOf, FilterSelect, Filters, FilterText } from "../../parts/filters.tsx";
import { NodeLink, OperationLink, RecordLink } from "../../parts/links.tsx";
import { LongList } from "../../parts/long-list.tsx";
import { PageHead } from "../../parts/page-head.tsx";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { Empty } from "../../parts/states.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { words } from "../../parts/tones.ts";
import { recordsRoute, VERDICTS } from "./route.ts";

type Row = Answer<"listSanitizationRecords">["items"][number];
type Search = ReturnType<typeof recordsRoute.useSearch>;

const PAGE = 100;
const NO_FILTER = {
  hostname: undefined,
  tenant: undefined,
  node_id: undefined,
  allocation_id: undefined,
  verdict: undefined,
} as const satisfies Search;

const COLUMNS: readonly Column<Row>[] = [
  { id: "id", head: "Record", cell: ({ record_id: id }) => <RecordLink id={id} /> },
  { id: "host", head: "Host", cell: ({ node_id: id, hostname }) => <NodeLink id={id}>{hostname}</NodeLink> },
  { id: "sequence", head: "Number", align: "end", wide: true, cell: ({ sequence }) => sequence },
  { id: "verdict", head: "Verdict", cell: ({ verdict }) => <StatusBadge status={verdict} /> },
  { id: "tenant", head: "Tenant", cell: ({ tenant }) => tenant ?? "-" },
  {
    id: "mode",
    head: "Turnover",
    wide: true,
    cell: ({ mode, decommission_id: id }) => (
      <OperationLink kind="decommission" id={id}>
        {words(mode)}
      </OperationLink>
    ),
  },
  { id: "trust", head: "Trust", wide: true, cell: ({ trust }) => words(trust) },
  {
    id: "signed",
    head: "Signed by",
    wide: true,
    cell: ({ signed_by_agent: agent }) => (agent ? "agent and hub" : "hub only"),
  },
  { id: "written", head: "Written", cell: ({ created_at: at }) => <RelativeTime at={at} /> },
];

/** Lists sanitization records, which say what the hub knows about each cleaning of a host between two tenants. */
export function Page(): ReactNode {
  const search = recordsRoute.useSearch();
  const navigate = useNavigate({ from: "/records" });
  const change = (changes: Partial<Search>): void =>
    void navigate({ search: (before) => ({ ...before, ...changes }), replace: true });
  const filtered = Object.values(search).some((value) => value !== undefined);
  return (
    <>
      <PageHead title="Records" below="What the hub knows about the cleaning of a host after each turnover." />
      <Filters onClear={filtered ? () => change(NO_FILTER) : undefined}>
        <FilterText find label="Hostname" value={search.hostname} onChange={(hostname) => change({ hostname })} />
        <FilterText label="Tenant" value={search.tenant} onChange={(tenant) => change({ tenant })} />
        <FilterSelect
          label="Verdict"
          value={search.verdict}
          choices={choicesOf(VERDICTS)}
          onChange={(verdict) => change({ verdict: verdict as Search["verdict"] })}
        />
        {search.allocation_id === undefined && search.node_id === undefined ? null : (
          <span>Only records of one {search.node_id === undefined ? "allocation" : "node"}</span>
        )}
      </Filters>
      <LongList<Row>
        what="records"
        about={["operations"]}
        listKey={["records", "list", search]}
        ask={(cursor, signal) =>
          read(
            api.GET("/api/v1/admin/sanitization-records", {
              params: { query: { ...search, limit: PAGE, cursor } },
              signal,
            }),
          )
        }
        columns={COLUMNS}
        rowKey={({ record_id: id }) => id}
        empty={<NoRecords filtered={filtered} />}
      />
    </>
  );
}

const NoRecords = ({ filtered }: { readonly filtered: boolean }): ReactNode =>
  filtered ? (
    <Empty title="The filter leaves out all records" kind="filtered">
      Hostname and tenant have to be complete. Take a filter back, or clear all of them.
    </Empty>
  ) : (
    <Empty title="No host has been cleaned yet" kind="none">
      The hub writes a record at the end of each turnover of a node.
    </Empty>
  );
