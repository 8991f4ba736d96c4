import { Button } from "@mantine/core";
import { Link, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import { api, read } from "../../api/client.ts";
import type { Answer } from "../../api/schema.ts";
import { useMay } from "../../api/session.ts";
import { useSiteName } from "../../api/sites.ts";
import type { Column } from "../../parts/data-table.tsx";
import { choicesOf, FilterSelect, Filters, FilterText, SiteFilter } from "../../parts/filters.tsx";
import { AllocationLink, NodeLink } from "../../parts/links.tsx";
import { LongList } from "../../parts/long-list.tsx";
import { PageHead } from "../../parts/page-head.tsx";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { Empty } from "../../parts/states.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { ALLOCATION_STATUSES, allocationsRoute } from "./route.ts";

type Row = Answer<"listAllocations">["items"][number];
type Search = ReturnType<typeof allocationsRoute.useSearch>;

const PAGE = 100;
const NO_FILTER = {
  hostname: undefined,
  tenant: undefined,
  login_user: undefined,
  site_id: undefined,
  node_id: undefined,
  status: undefined,
} as const satisfies Search;

const whyOf = ({ error_message: error, next_action: next, end_reason: end }: Row): string =>
  [error, next === null ? null : `Next: ${next}`, end].filter((part) => part !== null).join(" ");

const columnsOf = (siteName: (id: string | null) => string): readonly Column<Row>[] => [
  { id: "id", head: "Allocation", cell: ({ id }) => <AllocationLink id={id} /> },
  { id: "host", head: "Host", cell: ({ node_id: id, hostname }) => <NodeLink id={id}>{hostname}</NodeLink> },
  { id: "tenant", head: "Tenant", cell: ({ tenant }) => tenant },
  { id: "status", head: "Status", cell: ({ status }) => <StatusBadge status={status} /> },
  {
    id: "account",
    head: "Account",
    wide: true,
    cell: ({ login_user: user, root }) => (root ? `${user}, with root` : user),
  },
  { id: "site", head: "Site", wide: true, cell: ({ site_id: id }) => siteName(id) },
  { id: "since", head: "Since", cell: ({ created_at: at }) => <RelativeTime at={at} /> },
  {
    id: "ends",
    head: "Ends",
    wide: true,
    cell: ({ ended_at: ended, ends_at: ends }) => <RelativeTime at={ended ?? ends} none="when released" />,
  },
  { id: "why", head: "Why", wide: true, cell: (row) => <span title={whyOf(row)}>{whyOf(row)}</span> },
];

/** Finds allocations: which tenant uses which node. */
export function Page(): ReactNode {
  const search = allocationsRoute.useSearch();
  const navigate = useNavigate({ from: "/allocations" });
  const siteName = useSiteName();
  const may = useMay();
  const columns = useMemo(() => columnsOf(siteName), [siteName]);
  const change = (changes: Partial<Search>): void =>
    void navigate({ search: (before) => ({ ...before, ...changes }), replace: true });
  const filtered = Object.values(search).some((value) => value !== undefined);
  return (
    <>
      <PageHead
        title="Allocations"
        actions={
          may("allocate") ? (
            <Button renderRoot={(props) => <Link to="/allocations/new" {...props} />}>New allocation</Button>
          ) : null
        }
      />
      <Filters onClear={filtered ? () => change(NO_FILTER) : undefined}>
        <FilterText find label="Hostname" value={search.hostname} onChange={(hostname) => change({ hostname })} />
        <FilterText label="Tenant" value={search.tenant} onChange={(tenant) => change({ tenant })} />
        <FilterText label="Account" value={search.login_user} onChange={(login_user) => change({ login_user })} />
        <FilterSelect
          label="Status"
          value={search.status}
          choices={choicesOf(ALLOCATION_STATUSES)}
          onChange={(status) => change({ status: status as Search["status"] })}
        />
        <SiteFilter value={search.site_id} onChange={(site_id) => change({ site_id })} />
      </Filters>
      <LongList<Row>
        what="allocations"
        about={["allocations"]}
        listKey={["allocations", "list", search]}
        ask={(cursor, signal) =>
          read(api.GET("/api/v1/admin/allocations", { params: { query: { ...search, limit: PAGE, cursor } }, signal }))
        }
        columns={columns}
        rowKey={({ id }) => id}
        empty={<NoAllocations filtered={filtered} />}
      />
    </>
  );
}

const NoAllocations = ({ filtered }: { readonly filtered: boolean }): ReactNode =>
  filtered ? (
    <Empty title="The filter leaves out all allocations" kind="filtered">
      Hostname, tenant and account have to be complete. Take a filter back, or clear all of them.
    </Empty>
  ) : (
    <Empty title="No node has been allocated yet" kind="none">
      An allocation gives a node to a tenant: the agent makes the tenant's account on the host, and the node is cleaned
      after the tenant.
    </Empty>
  );
