import { Button } from "@mantine/core";
import type { UseQueryResult } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useEffect, useEffectEvent, useMemo, useRef } from "react";
import { useSiteName } from "../../api/sites.ts";
import type { Column } from "../../parts/data-table.tsx";
import { NodeLink } from "../../parts/links.tsx";
import { useListPages } from "../../parts/list-pages.ts";
import { LongList } from "../../parts/long-list.tsx";
import { Section } from "../../parts/page-head.tsx";
import { Refresh } from "../../parts/refresh.tsx";
import { Empty, Failure, Loading } from "../../parts/states.tsx";
import { StatusBadge, ToneMark } from "../../parts/status-badge.tsx";
import { counted, toneOf, words } from "../../parts/tones.ts";
import { hasFilter } from "./filter-bar.tsx";
import { type Facets, type NodeRow, type NodesSearch, placedOf } from "./node-questions.ts";
import { RackColumn } from "./rack-column.tsx";
import { racksOf } from "./rack-layout.ts";
import { type Choices, isPlace, placeToChoose } from "./rack-place.ts";
import classes from "./racks.module.css";

interface Props {
  readonly search: NodesSearch;
  /** The numbers of nodes for each filter value, under the filter in the URL. */
  readonly facets: UseQueryResult<Facets>;
  readonly onChange: (changes: Partial<NodesSearch>) => void;
}

/** Draws the nodes of one room at their places in the racks. The room does not change while a person looks at it, because the URL names the room. */
export function Racks({ search, facets, onChange }: Props): ReactNode {
  if (!isPlace(search)) return <WhichPlace search={search} facets={facets} onChange={onChange} />;
  const key = JSON.stringify(placedOf(search, true).key);
  return (
    <>
      <Where search={search} onChange={onChange} />
      <Aisle key={key} search={search} />
      <Unplaced search={search} />
    </>
  );
}

/** Finds from the node counts which room to draw; if the site has only one room, writes it into the URL. */
function WhichPlace({ search, facets, onChange }: Props): ReactNode {
  // While the counts for a new filter are loading, the counts on the screen still belong to the previous filter.
  if (facets.data === undefined || facets.isPlaceholderData)
    return facets.isError ? (
      <Failure error={facets.error} retry={() => void facets.refetch()} />
    ) : (
      <Loading what="the racks" />
    );
  const choice = placeToChoose(search, facets.data);
  if (choice.kind === "only") return <OnlyPlace place={choice.place} onChange={onChange} />;
  if (choice.kind === "empty")
    return (
      <Empty
        title="No node of the site is in this view"
        kind={hasFilter({ ...search, site_id: undefined }) ? "filtered" : "none"}
      >
        Take a filter back, or choose another site.
      </Empty>
    );
  return <Choice place={choice} onChange={onChange} />;
}

function OnlyPlace({
  place,
  onChange,
}: {
  readonly place: Partial<NodesSearch>;
  readonly onChange: Props["onChange"];
}): ReactNode {
  const name = useEffectEvent(() => onChange(place));
  useEffect(() => name(), []);
  return <Loading what="the racks" />;
}

/** Asks the person for the site and then for the room, because a drawing of the whole fleet would be unreadable. */
function Choice({
  place: { kind, values, more, without },
  onChange,
}: {
  readonly place: Choices;
  readonly onChange: Props["onChange"];
}): ReactNode {
  const siteName = useSiteName();
  const choose = (value: string): void => onChange(kind === "site" ? { site_id: value } : { room: value });
  if (values.length === 0)
    return (
      <Empty title={`No node that the filter matches is at a ${kind}`} kind="filtered">
        Take a filter back, or look at the list.
      </Empty>
    );
  return (
    <Section title={kind === "site" ? "Racks of which site?" : "Racks of which room?"}>
      <ul className={classes.choices}>
        {values.map(({ value, count }) => (
          <li key={value}>
            <Button variant="default" onClick={() => choose(value)}>
              {kind === "site" ? siteName(value) : value}
            </Button>{" "}
            {counted(count, "node")}
          </li>
        ))}
        {kind === "room" && without !== 0 ? (
          <li>
            <Button variant="default" onClick={() => onChange({ no_room: "true" })}>
              No room
            </Button>{" "}
            {without === null ? "" : counted(without, "node")}
          </li>
        ) : null}
      </ul>
      {kind === "room" || without === null || without === 0 ? null : (
        <p className={classes.note}>Only in the list, because they belong to no site: {counted(without, "node")}.</p>
      )}
      {more > 0 ? (
        <p className={classes.note}>{`${more} rarer ${kind}s are left out. Choose other filters first.`}</p>
      ) : null}
    </Section>
  );
}

/** Says whether a filter hides nodes of the drawn racks, so that a rack unit may look free although a node is in it. */
const hidesNodes = ({ site_id: _, room: __, no_room: ___, include_deleted: ____, ...rest }: NodesSearch): boolean =>
  hasFilter(rest);

/** The hub sends no event when a person changes a node's location, so the rack view has a button that loads the nodes again. */
function Where({ search, onChange }: Omit<Props, "facets">): ReactNode {
  const siteName = useSiteName();
  const room = search.no_room === undefined ? search.room : undefined;
  return (
    <>
      <p className={classes.where}>
        <span>
          {siteName(search.site_id ?? null)}
          {room === undefined ? "" : `, room ${room}`}
          {search.no_room === undefined ? "" : ", nodes without a room"}
        </span>
        <Button
          variant="default"
          onClick={() => onChange({ site_id: undefined, room: undefined, no_room: undefined, rack: undefined })}
        >
          Another place
        </Button>
        <Refresh queryKey={["nodes"]} />
      </p>
      {hidesNodes({ ...search, rack: undefined }) ? (
        <p className={classes.note}>The filter leaves out nodes, so a unit without a node may be in use.</p>
      ) : null}
    </>
  );
}

/** The legend of the rack view: one node status for each colour, and the meaning of that colour. */
const LEGEND = ["active", "draining", "offline", "retired"] as const;
const MEANINGS: Readonly<Record<(typeof LEGEND)[number], string>> = {
  active: "in service",
  draining: "on its way into service or out of it",
  offline: "offline or quarantined",
  retired: "out of use",
};

const Legend = (): ReactNode => (
  <ul className={classes.legend} aria-label="Legend">
    {LEGEND.map((status) => (
      <li key={status} className={classes.sample} data-tone={toneOf(status)}>
        <ToneMark tone={toneOf(status)} /> {MEANINGS[status]}
      </li>
    ))}
  </ul>
);

const COLUMN_WIDTH = 204;
const OVERSCAN = 2;

/** The racks side by side. Only the racks in view are in the DOM, and only the pages with their nodes are loaded and kept up to date. */
function Aisle({ search }: { readonly search: NodesSearch }): ReactNode {
  const pages = useListPages<NodeRow>(placedOf(search, true));
  const racks = useMemo(() => racksOf(pages.rows, pages.answeredAt), [pages.rows, pages.answeredAt]);
  const scroller = useRef<HTMLElement>(null);
  const virtualizer = useVirtualizer({
    count: racks.length,
    horizontal: true,
    getScrollElement: () => scroller.current,
    estimateSize: () => COLUMN_WIDTH,
    overscan: OVERSCAN,
    useFlushSync: false,
    getItemKey: (index) => racks[index]?.key ?? index,
  });
  const items = virtualizer.getVirtualItems();
  const [first, last] = [racks[items[0]?.index ?? 0]?.first ?? 0, racks[items.at(-1)?.index ?? 0]?.last ?? 0];
  const { show, hasMore } = pages;
  const count = racks.length;
  // biome-ignore lint/correctness/useExhaustiveDependencies: more racks may need another page although the same racks are in sight
  useEffect(() => show(first, last), [first, last, count, show]);
  if (pages.isFirst)
    return pages.error === null ? <Loading what="the racks" /> : <Failure error={pages.error} retry={pages.retry} />;
  if (count === 0)
    return (
      <Empty title="No node here has a rack and a unit" kind={hidesNodes(search) ? "filtered" : "none"}>
        Set the locations of nodes with the verb Set location of the list, or with{" "}
        <code>muster set-node-locations</code>.
      </Empty>
    );
  return (
    <Section title="Racks" aside={<Legend />}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by the keyboard */}
      <section className={classes.aisle} ref={scroller} aria-label="Racks side by side" tabIndex={0}>
        <ul
          className={classes.racks}
          style={{
            paddingLeft: items[0]?.start ?? 0,
            paddingRight: virtualizer.getTotalSize() - (items.at(-1)?.end ?? 0),
          }}
        >
          {items.map(({ index, key }) => {
            const rack = racks[index];
            return rack === undefined ? null : (
              <li key={key} className={classes.column} aria-posinset={index + 1} aria-setsize={hasMore ? -1 : count}>
                <RackColumn rack={rack} isWhole={!hasMore || index < count - 1} />
              </li>
            );
          })}
        </ul>
      </section>
      {pages.error === null ? null : <Failure error={pages.error} retry={pages.retry} />}
    </Section>
  );
}

const UNPLACED: readonly Column<NodeRow>[] = [
  { id: "host", head: "Host", cell: ({ id, hostname }) => <NodeLink id={id}>{hostname}</NodeLink> },
  { id: "status", head: "Status", cell: ({ status }) => <StatusBadge status={status}>{words(status)}</StatusBadge> },
  { id: "room", head: "Room", cell: ({ location: { room } }) => room ?? "-" },
  { id: "rack", head: "Rack", cell: ({ location: { rack } }) => rack ?? "-" },
  { id: "sku", head: "SKU", wide: true, cell: ({ sku_id: sku }) => sku },
];

/** Lists the nodes of the room that no rack shows, because nobody has entered their rack or unit. */
function Unplaced({ search }: { readonly search: NodesSearch }): ReactNode {
  const { about, key, ask } = placedOf(search, false);
  return (
    <>
      <h2 className={classes.heading}>Nodes without a rack or a unit</h2>
      <LongList<NodeRow>
        what="nodes without a place"
        about={about}
        listKey={key}
        ask={ask}
        columns={UNPLACED}
        rowKey={({ id }) => id}
        empty={<p className={classes.note}>Every node here has a rack and a unit.</p>}
      />
    </>
  );
}
