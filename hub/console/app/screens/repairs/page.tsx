import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import { api, read } from "../../api/client.ts";
import type { Answer } from "../../api/schema.ts";
import { useMay } from "../../api/session.ts";
import { useSiteName, useSites } from "../../api/sites.ts";
import type { Column } from "../../parts/data-table.tsx";
import { choicesOf, FilterSelect, Filters, FilterText, SiteFilter } from "../../parts/filters.tsx";
import { RepairLink } from "../../parts/links.tsx";
import { LongList } from "../../parts/long-list.tsx";
import { PageHead } from "../../parts/page-head.tsx";
import { Refresh } from "../../parts/refresh.tsx";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { Empty } from "../../parts/states.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { words } from "../../parts/tones.ts";
import { REPAIR_MODES, REPAIR_STATES, repairsRoute } from "./route.ts";

type Row = Answer<"listRepairs">["items"][number];
type Search = ReturnType<typeof repairsRoute.useSearch>;

const PAGE = 100;
const KEY = ["repairs", "list"] as const;
const NO_FILTER = {
  hostname: undefined,
  claimed_by: undefined,
  state: undefined,
  mode: undefined,
  site_id: undefined,
  node_id: undefined,
  open: undefined,
} as const satisfies Search;
const ENDED = [
  { value: "true", label: "open" },
  { value: "false", label: "ended" },
];

const columnsOf = (siteName: (id: string | null) => string): readonly Column<Row>[] => [
  { id: "host", head: "Host", cell: ({ id, hostname }) => <RepairLink id={id}>{hostname}</RepairLink> },
  { id: "state", head: "State", cell: ({ state }) => <StatusBadge status={state} /> },
  { id: "since", head: "Since", cell: ({ state_since: at }) => <RelativeTime at={at} /> },
  { id: "mode", head: "Kind", cell: ({ mode }) => mode },
  {
    id: "fault",
    head: "Fault",
    cell: ({ issue: { category, summary } }) => <span title={summary}>{`${category}: ${summary}`}</span>,
  },
  { id: "by", head: "Claimed by", cell: ({ claimed_by: by, state }) => (state === "claimed" ? by : "-") },
  { id: "until", head: "Claim ends", wide: true, cell: ({ claim_until: at }) => <RelativeTime at={at} none="-" /> },
  { id: "attempt", head: "Attempts", align: "end", wide: true, cell: ({ attempt }) => attempt },
  { id: "held", head: "Held back", wide: true, cell: ({ held_back: held }) => (held === null ? "-" : words(held)) },
  { id: "site", head: "Site", wide: true, cell: ({ site_id: id }) => siteName(id) },
  { id: "opened", head: "Opened", wide: true, cell: ({ opened_at: at }) => <RelativeTime at={at} /> },
];

/** Lists the repairs of machines, the newest first. */
export function Page(): ReactNode {
  const search = repairsRoute.useSearch();
  const navigate = useNavigate({ from: "/repairs" });
  const siteName = useSiteName();
  const sites = useSites();
  const may = useMay();
  const columns = useMemo(() => columnsOf(siteName), [siteName]);
  const change = (changes: Partial<Search>): void =>
    void navigate({ search: (before) => ({ ...before, ...changes }), replace: true });
  const filtered = Object.values(search).some((value) => value !== undefined);
  return (
    <>
      <PageHead
        title="Repairs"
        below="Machines with a fault. A machine takes no new tenant before its repair is closed."
        // A repair team receives the events of only the repairs that it has claimed, so it gets a button that reloads the list.
        actions={may("read_fleet") ? null : <Refresh queryKey={KEY} />}
      />
      <Filters onClear={filtered ? () => change(NO_FILTER) : undefined}>
        <FilterText find label="Hostname" value={search.hostname} onChange={(hostname) => change({ hostname })} />
        <FilterSelect
          label="State"
          value={search.state}
          choices={choicesOf(REPAIR_STATES)}
          onChange={(state) => change({ state: state as Search["state"] })}
        />
        <FilterSelect
          label="Kind"
          value={search.mode}
          choices={choicesOf(REPAIR_MODES)}
          onChange={(mode) => change({ mode: mode as Search["mode"] })}
        />
        <FilterSelect
          label="Ended"
          value={search.open}
          choices={ENDED}
          onChange={(open) => change({ open: open as Search["open"] })}
        />
        <FilterText label="Claimed by" value={search.claimed_by} onChange={(claimed_by) => change({ claimed_by })} />
        {sites.size === 0 ? null : <SiteFilter value={search.site_id} onChange={(site_id) => change({ site_id })} />}
      </Filters>
      <LongList<Row>
        what="repairs"
        about={["repairs"]}
        listKey={[...KEY, search]}
        ask={(cursor, signal) =>
          read(api.GET("/api/v1/admin/repairs", { params: { query: { ...search, limit: PAGE, cursor } }, signal }))
        }
        columns={columns}
        rowKey={({ id }) => id}
        empty={<NoRepairs filtered={filtered} />}
      />
    </>
  );
}

const NoRepairs = ({ filtered }: { readonly filtered: boolean }): ReactNode =>
  filtered ? (
    <Empty title="The filter leaves out all repairs" kind="filtered">
      A hostname and the name of who claimed have to be complete. Take a filter back, or clear all of them.
    </Empty>
  ) : (
    <Empty title="No machine is or was in repair" kind="none">
      A repair begins when a tenant gives a machine up with its fault, or when an operator reports a fault on the screen
      of a node.
    </Empty>
  );
