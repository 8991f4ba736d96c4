import { Button } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Column } from "../../parts/data-table.tsx";
import { OperationLink } from "../../parts/links.tsx";
import { useListPages } from "../../parts/list-pages.ts";
import { Section } from "../../parts/page-head.tsx";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { Empty, Failure, Loading } from "../../parts/states.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { words } from "../../parts/tones.ts";
import { VirtualTable } from "../../parts/virtual-table.tsx";
import classes from "./node.module.css";
import { type Entry, historyOf, type Node } from "./node-questions.ts";
import { KINDS, nodeRoute } from "./route.ts";

const COLUMNS: readonly Column<Entry>[] = [
  { id: "at", head: "When", cell: ({ at }) => <RelativeTime at={at} /> },
  { id: "kind", head: "Kind", cell: ({ kind }) => words(kind) },
  {
    id: "what",
    head: "What",
    cell: ({ what, operation_id: id }) =>
      id === null ? words(what) : <OperationLink id={id}>{words(what)}</OperationLink>,
  },
  { id: "status", head: "Status", cell: ({ status }) => (status === null ? "-" : <StatusBadge status={status} />) },
  { id: "by", head: "By", wide: true, cell: ({ by }) => by ?? "-" },
  { id: "ended", head: "Ended", wide: true, cell: ({ ended_at: at }) => <RelativeTime at={at} none="-" /> },
  { id: "why", head: "Why", cell: ({ message }) => <span title={message ?? undefined}>{message ?? "-"}</span> },
];

/** Shows one timeline of all events, tasks and other entries of the node, the newest first. The pages load as a person scrolls. */
export function NodeHistory({ node }: { readonly node: Node }): ReactNode {
  const { kind } = nodeRoute.useSearch();
  const navigate = useNavigate({ from: "/nodes/$id" });
  const toggle = (one: (typeof KINDS)[number]): void => {
    const next = kind?.includes(one) ? kind.filter((other) => other !== one) : [...(kind ?? []), one];
    void navigate({
      search: (before) => ({ ...before, kind: next.length === 0 ? undefined : next }),
      replace: true,
      resetScroll: false,
    });
  };
  return (
    <>
      {/* biome-ignore lint/a11y/useSemanticElements: the buttons are no fields of a form */}
      <div className={classes.verbs} role="group" aria-label="Kinds of entries">
        {KINDS.map((one) => (
          <Button
            key={one}
            variant={kind?.includes(one) ? "light" : "default"}
            aria-pressed={kind?.includes(one) ?? false}
            onClick={() => toggle(one)}
          >
            {words(one)}
          </Button>
        ))}
        <a className={classes.file} href={`/api/v1/admin/nodes/${node.id}/lifecycle/csv`} download>
          As a file (CSV)
        </a>
      </div>
      <Entries key={kind?.join(",") ?? ""} id={node.id} kinds={kind} />
    </>
  );
}

function Entries({ id, kinds }: { readonly id: string; readonly kinds: readonly string[] | undefined }): ReactNode {
  const pages = useListPages<Entry>(historyOf(id, kinds));
  if (pages.isFirst)
    return pages.error === null ? <Loading what="the history" /> : <Failure error={pages.error} retry={pages.retry} />;
  if (pages.rows.length === 0)
    return kinds === undefined ? (
      <Empty title="Nothing has happened to the node yet" kind="none" />
    ) : (
      <Empty title="The node has no entries of these kinds" kind="filtered">
        Choose other kinds, or none of them to see all.
      </Empty>
    );
  return (
    <Section title="History">
      <VirtualTable
        label="History of the node"
        columns={COLUMNS}
        rows={pages.rows}
        rowKey={({ kind, id: key, at, what }) => `${kind} ${key} ${at} ${what}`}
        rowName={({ what, at }) => `${words(what)} ${at}`}
        total={undefined}
        onShow={pages.show}
        foot={pages.hasMore ? <Loading what="older entries" /> : null}
      />
    </Section>
  );
}
