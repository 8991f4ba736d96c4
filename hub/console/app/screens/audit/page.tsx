import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import { api, read } from "../../api/client.ts";
import type { Answer } from "../../api/schema.ts";
import { useSiteName } from "../../api/sites.ts";
import type { Column } from "../../parts/data-table.tsx";
import { choicesOf, FilterSelect, Filters, FilterText, SiteFilter } from "../../parts/filters.tsx";
import { LongList } from "../../parts/long-list.tsx";
import { PageHead } from "../../parts/page-head.tsx";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { Empty } from "../../parts/states.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { auditRoute } from "./route.ts";
import { Verify } from "./verify.tsx";

type Row = Answer<"listAuditLogs">["items"][number];
type Search = ReturnType<typeof auditRoute.useSearch>;

const PAGE = 100;
const NO_FILTER = {
  actor: undefined,
  action: undefined,
  object_kind: undefined,
  object_id: undefined,
  site_id: undefined,
  outcome: undefined,
  since: undefined,
  until: undefined,
  request_id: undefined,
  address: undefined,
} as const satisfies Search;

const detailsOf = ({ details }: Row): string =>
  details === null || (typeof details === "object" && Object.keys(details).length === 0) ? "" : JSON.stringify(details);

const columnsOf = (siteName: (id: string | null) => string): readonly Column<Row>[] => [
  { id: "when", head: "When", cell: ({ occurred_at: at }) => <RelativeTime at={at} /> },
  {
    id: "actor",
    head: "Who",
    cell: ({ actor, role, via }) => <span title={`role ${role}${via === null ? "" : `, by ${via}`}`}>{actor}</span>,
  },
  { id: "action", head: "Action", cell: ({ action }) => action },
  {
    id: "outcome",
    head: "Outcome",
    cell: ({ outcome, error_code: code }) => (
      <StatusBadge status={outcome} tone={outcome === "done" ? "good" : "bad"}>
        {code ?? outcome}
      </StatusBadge>
    ),
  },
  { id: "target", head: "Object", wide: true, cell: ({ target }) => <code title={target}>{target}</code> },
  { id: "site", head: "Site", wide: true, cell: ({ site_id: id }) => (id === null ? "-" : siteName(id)) },
  { id: "reason", head: "Reason", wide: true, cell: ({ reason }) => <span title={reason ?? ""}>{reason ?? "-"}</span> },
  {
    id: "details",
    head: "What changed",
    wide: true,
    cell: (row) => <span title={detailsOf(row)}>{detailsOf(row) || "-"}</span>,
  },
  { id: "address", head: "From", wide: true, cell: ({ address }) => address ?? "-" },
  { id: "number", head: "Number", wide: true, align: "end", cell: ({ sequence }) => sequence ?? "not sealed yet" },
];

/** Who did what with Muster, newest first. */
export function Page(): ReactNode {
  const search = auditRoute.useSearch();
  const navigate = useNavigate({ from: "/audit" });
  const siteName = useSiteName();
  const columns = useMemo(() => columnsOf(siteName), [siteName]);
  const change = (changes: Partial<Search>): void =>
    void navigate({ search: (before) => ({ ...before, ...changes }), replace: true });
  const filtered = Object.values(search).some((value) => value !== undefined);
  return (
    <>
      <PageHead title="Audit" below="Who did what with Muster, from where, when, and with which outcome." />
      <Verify />
      <AuditFilters search={search} filtered={filtered} onChange={change} />
      <LongList<Row>
        what="entries"
        about={["audit"]}
        listKey={["audit", "list", search]}
        ask={(cursor, signal) =>
          read(api.GET("/api/v1/admin/audit-logs", { params: { query: { ...search, limit: PAGE, cursor } }, signal }))
        }
        columns={columns}
        rowKey={({ id }) => id}
        empty={
          <Empty title="No entry matches" kind={filtered ? "filtered" : "none"}>
            Each filter needs the complete value. Take a filter back, or clear all of them.
          </Empty>
        }
      />
    </>
  );
}

/** The filters of the audit whose values a person types, with their labels. */
const TYPED = [
  ["actor", "Who"],
  ["action", "Action, as createAllocation"],
  ["object_kind", "Kind of object, as nodes"],
  ["object_id", "Id of the object"],
  ["since", "From, as 2026-11-01T00:00:00Z"],
  ["until", "Before"],
  ["address", "Address"],
  ["request_id", "Request id"],
] as const;

function AuditFilters({
  search,
  filtered,
  onChange,
}: {
  readonly search: Search;
  readonly filtered: boolean;
  readonly onChange: (changes: Partial<Search>) => void;
}): ReactNode {
  return (
    <Filters onClear={filtered ? () => onChange(NO_FILTER) : undefined}>
      {TYPED.map(([name, label]) => (
        <FilterText
          key={name}
          find={name === "actor"}
          label={label}
          value={search[name]}
          onChange={(value) => onChange({ [name]: value })}
        />
      ))}
      <FilterSelect
        label="Outcome"
        value={search.outcome}
        choices={choicesOf(["done", "refused"])}
        onChange={(outcome) => onChange({ outcome: outcome as Search["outcome"] })}
      />
      <SiteFilter value={search.site_id} onChange={(site_id) => onChange({ site_id })} />
    </Filters>
  );
}
