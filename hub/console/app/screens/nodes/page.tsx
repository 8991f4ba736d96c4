import { SegmentedControl } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { lazy, type ReactNode, Suspense, useCallback, useMemo, useState } from "react";
import { useSiteName } from "../../api/sites.ts";
import { useListPages } from "../../parts/list-pages.ts";
import { PageHead } from "../../parts/page-head.tsx";
import shared from "../../parts/parts.module.css";
import { Empty, Failure, Loading } from "../../parts/states.tsx";
import { counted } from "../../parts/tones.ts";
import { type Selection, VirtualTable } from "../../parts/virtual-table.tsx";
import { BulkBar } from "./bulk-bar.tsx";
import { columnsOfSearch, nodeColumns } from "./columns.tsx";
import { FilterBar, hasFilter } from "./filter-bar.tsx";
import { type Facets, facetsOf, listOf, type NodeRow, type NodesSearch } from "./node-questions.ts";
import { nodesRoute } from "./route.ts";
import { type Chosen, change, NOTHING } from "./selection.ts";
import { ColumnMenu, ViewMenu } from "./view-menu.tsx";

const Racks = lazy(async () => ({ default: (await import("./racks.tsx")).Racks }));

/** Choosing a site or room ends the view of the nodes without a room, which exists only in the view by racks. */
const withPlace = (changes: Partial<NodesSearch>): Partial<NodesSearch> =>
  "room" in changes || "site_id" in changes ? { no_room: undefined, ...changes } : changes;

/**
 * Finds nodes, lists them, and lets a person change many of them at once. The URL holds the filter, the order, the columns and the view of the list
 * of nodes.
 */
export function Page(): ReactNode {
  const search = nodesRoute.useSearch();
  const navigate = useNavigate({ from: "/nodes" });
  const siteName = useSiteName();
  const facets = useQuery({ ...facetsOf(search), placeholderData: (before) => before });
  const all = useMemo(() => nodeColumns(siteName), [siteName]);
  const shown = columnsOfSearch(all, search.columns);
  const change = (changes: Partial<NodesSearch>): void =>
    void navigate({ search: (before) => ({ ...before, ...withPlace(changes) }), replace: true });
  const inRacks = search.view === "racks";
  // The node counts that the hub returns cannot be filtered by nodes without a room.
  const total = search.no_room === undefined ? facets.data?.total : undefined;
  return (
    <>
      <PageHead
        title="Nodes"
        beside={<span role="status">{total === undefined ? "" : counted(total, "node")}</span>}
        actions={
          <>
            <SegmentedControl
              size="xs"
              aria-label="View"
              data={[
                { value: "list", label: "List" },
                { value: "racks", label: "Racks" },
              ]}
              value={search.view ?? "list"}
              onChange={(view) => change({ view: view === "racks" ? view : undefined, no_room: undefined })}
            />
            {inRacks ? null : <ColumnMenu all={all} shown={shown} onChange={(columns) => change({ columns })} />}
            <ViewMenu search={search} />
          </>
        }
      />
      <FilterBar search={search} facets={facets.data} onChange={change} />
      {inRacks ? (
        <Suspense fallback={<Loading what="the racks" />}>
          <Racks search={search} facets={facets} onChange={change} />
        </Suspense>
      ) : (
        <Listed
          key={JSON.stringify(listOf(search).key)}
          search={search}
          facets={facets.data}
          columns={shown}
          onSort={(sort) => change({ sort: sort as NodesSearch["sort"] })}
        />
      )}
    </>
  );
}

interface ListedProps {
  readonly search: NodesSearch;
  readonly facets: Facets | undefined;
  readonly columns: ReturnType<typeof nodeColumns>;
  readonly onSort: (sort: string) => void;
}

const keyOf = ({ id }: NodeRow): string => id;
const nameOf = ({ hostname }: NodeRow): string => hostname;

function Listed({ search, facets, columns, onSort }: ListedProps): ReactNode {
  const pages = useListPages<NodeRow>(listOf(search));
  const [chosen, setChosen] = useState<Chosen>(NOTHING);
  const { rows } = pages;
  const loaded = useMemo(() => new Map(rows.map(({ id, site_id: siteId }) => [id, siteId])), [rows]);
  const set = useCallback(
    (keys: readonly string[], add: boolean): void => setChosen((before) => change(before, loaded, keys, add)),
    [loaded],
  );
  const selection: Selection = { has: (key) => chosen.kind === "all" || chosen.ids.has(key), set };
  if (pages.isFirst)
    return pages.error === null ? <Loading what="the nodes" /> : <Failure error={pages.error} retry={pages.retry} />;
  return (
    <>
      {/* A verb may take all nodes out of the filter, and its dialog still says what the hub has refused. */}
      <BulkBar chosen={chosen} facets={facets} search={search} onChange={setChosen} />
      {rows.length === 0 ? (
        <NoNodes search={search} />
      ) : (
        <section className={shared.section} aria-label="The nodes">
          <VirtualTable
            label="Nodes"
            columns={columns}
            rows={rows}
            rowKey={keyOf}
            rowName={nameOf}
            total={facets?.total}
            order={{ sort: search.sort ?? "hostname", onSort }}
            selection={selection}
            onShow={pages.show}
            foot={pages.hasMore ? <Loading what="more nodes" /> : null}
          />
          {pages.error === null ? null : <Failure error={pages.error} retry={pages.retry} />}
        </section>
      )}
    </>
  );
}

/** The list of nodes can be empty for three reasons, and each needs another next step. */
function NoNodes({ search }: { readonly search: NodesSearch }): ReactNode {
  if (!hasFilter(search))
    return (
      <Empty title="This hub has no nodes yet" kind="none">
        A node appears here as soon as an onboarding or an adoption makes it.
      </Empty>
    );
  if (search.search !== undefined)
    return (
      <Empty title={`Nothing matches "${search.search}"`} kind="not_found">
        The search looks for a part of a hostname, for the beginning of an address or of a MAAS id, and for a whole MAC
        address, serial number or UUID. A deleted node is found only with the switch Deleted.
      </Empty>
    );
  return (
    <Empty title="The filter leaves out all nodes" kind="filtered">
      Take a filter back, or clear all of them.
    </Empty>
  );
}
