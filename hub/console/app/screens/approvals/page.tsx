import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import { api, read } from "../../api/client.ts";
import type { Answer } from "../../api/schema.ts";
import { useSiteName } from "../../api/sites.ts";
import type { Column } from "../../parts/data-table.tsx";
import { FilterSelect, Filters, SiteFilter } from "../../parts/filters.tsx";
import { ApprovalLink } from "../../parts/links.tsx";
import { LongList } from "../../parts/long-list.tsx";
import { PageHead } from "../../parts/page-head.tsx";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { Empty } from "../../parts/states.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { APPROVAL_STATES, approvalsRoute } from "./route.ts";

type Row = Answer<"listApprovals">["items"][number];
type Search = ReturnType<typeof approvalsRoute.useSearch>;

const PAGE = 100;
const OPEN = ["pending", "approved"] as const;

const columnsOf = (siteName: (id: string | null) => string): readonly Column<Row>[] => [
  { id: "id", head: "Request", cell: ({ id }) => <ApprovalLink id={id} /> },
  { id: "state", head: "State", cell: ({ state }) => <StatusBadge status={state} /> },
  { id: "does", head: "What the request does", cell: ({ does }) => <span title={does}>{does}</span> },
  {
    id: "by",
    head: "Asked by",
    cell: ({ requested_by: by, requested_by_you: you }) => (you ? `${by} (you)` : by),
  },
  { id: "site", head: "Site", wide: true, cell: ({ site_id: id }) => siteName(id) },
  { id: "asked", head: "Asked", wide: true, cell: ({ requested_at: at }) => <RelativeTime at={at} /> },
  { id: "expires", head: "Expires", cell: ({ expires_at: at }) => <RelativeTime at={at} /> },
  { id: "decided", head: "Decided by", wide: true, cell: ({ decided_by: by }) => by ?? "-" },
];

/** Lists the requests that a second person has to approve; without a filter it shows the open ones. */
export function Page(): ReactNode {
  const search = approvalsRoute.useSearch();
  const navigate = useNavigate({ from: "/approvals" });
  const siteName = useSiteName();
  const columns = useMemo(() => columnsOf(siteName), [siteName]);
  const change = (changes: Partial<Search>): void =>
    void navigate({ search: (before) => ({ ...before, ...changes }), replace: true });
  const state = search.state?.join(",") ?? OPEN.join(",");
  const query = { state, site_id: search.site_id };
  return (
    <>
      <PageHead title="Approvals" below="Requests that wait for a second person, because a profile asks for one." />
      <Filters onClear={undefined}>
        <FilterSelect
          label="State"
          all="open: waiting or approved"
          value={search.state?.join(",")}
          choices={[
            ...APPROVAL_STATES.map((one) => ({ value: one as string, label: one as string })),
            { value: APPROVAL_STATES.join(","), label: "all" },
          ]}
          onChange={(value) =>
            change({ state: value === undefined ? undefined : (value.split(",") as unknown as Search["state"]) })
          }
        />
        <SiteFilter value={search.site_id} onChange={(site_id) => change({ site_id })} />
      </Filters>
      <LongList<Row>
        what="requests"
        about={["approvals"]}
        listKey={["approvals", "list", query]}
        ask={(cursor, signal) =>
          read(api.GET("/api/v1/admin/approvals", { params: { query: { ...query, limit: PAGE, cursor } }, signal }))
        }
        columns={columns}
        rowKey={({ id }) => id}
        empty={
          <Empty title="No request is in this list" kind={search.state === undefined ? "none" : "filtered"}>
            The field second_person of a profile says which work needs a second person. Choose another state to see
            requests that are over.
          </Empty>
        }
      />
    </>
  );
}
