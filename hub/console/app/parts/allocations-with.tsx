import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useEffectEvent } from "react";
import { api, read } from "../api/client.ts";
import { question } from "../api/query-client.ts";
import type { Answer } from "../api/schema.ts";
import type { Column } from "./data-table.tsx";
import { AllocationLink, NodeLink } from "./links.tsx";
import { LongList } from "./long-list.tsx";
import { RelativeTime } from "./relative-time.tsx";
import { Answered, Empty } from "./states.tsx";
import { StatusBadge } from "./status-badge.tsx";
import { counted } from "./tones.ts";

type Row = Answer<"listAllocations">["items"][number];

/** Selects open allocations: those whose account should have a stored SSH key, or those that name an SSH key group. */
export type With = { readonly ssh_key_id: string } | { readonly ssh_key_group_id: string };

const PAGE = 100;
const MOST_NAMES = 8;

const COLUMNS: readonly Column<Row>[] = [
  { id: "id", head: "Allocation", cell: ({ id }) => <AllocationLink id={id} /> },
  { id: "host", head: "Host", cell: ({ node_id: id, hostname }) => <NodeLink id={id}>{hostname}</NodeLink> },
  { id: "status", head: "Status", cell: ({ status }) => <StatusBadge status={status} /> },
  { id: "account", head: "Account", wide: true, cell: ({ login_user: user }) => <code>{user}</code> },
  { id: "since", head: "Since", wide: true, cell: ({ created_at: at }) => <RelativeTime at={at} /> },
];

const ask = (by: With, cursor: string | undefined, signal: AbortSignal) =>
  read(api.GET("/api/v1/admin/allocations", { params: { query: { ...by, limit: PAGE, cursor } }, signal }));

/** Lists the open allocations whose accounts change when a stored SSH key or a key group changes. */
export const AllocationsWith = ({ by }: { readonly by: With }): ReactNode => (
  <LongList<Row>
    what="allocations that follow"
    about={["allocations", "ssh-keys"]}
    listKey={["allocations", "with", by]}
    ask={(cursor, signal) => ask(by, cursor, signal)}
    columns={COLUMNS}
    rowKey={({ id }) => id}
    empty={
      <Empty title="No open allocation follows" kind="none">
        A change here reaches no account.
      </Empty>
    }
  />
);

const firstWith = (by: With) =>
  question(["allocations", "ssh-keys"], ["allocations", "first with", by], (signal) => ask(by, undefined, signal));

interface FollowingProps {
  readonly by: With;
  /** Called when the dialog shows the person which accounts a change of the SSH key or key group affects. */
  readonly onKnown?: () => void;
}

/** Tells the person in a dialog which accounts a change of an SSH key or key group affects. */
export function Following({ by, onKnown }: FollowingProps): ReactNode {
  const query = useQuery({ ...firstWith(by), gcTime: 0 });
  const isKnown = query.data !== undefined;
  const tell = useEffectEvent(() => onKnown?.());
  useEffect(() => {
    if (isKnown) tell();
  }, [isKnown]);
  return (
    <Answered query={query} what="the allocations that follow">
      {(page) => <Followers {...page} />}
    </Answered>
  );
}

function Followers({ items, next_cursor: more }: Answer<"listAllocations">): ReactNode {
  if (items.length === 0) return <p>No open allocation follows, so no account changes.</p>;
  const names = items.slice(0, MOST_NAMES).map(({ hostname }) => hostname);
  const others = items.length - names.length;
  return (
    <p>
      {more === null ? counted(items.length, "open allocation") : `More than ${items.length} open allocations`} will
      follow: {names.join(", ")}
      {others > 0 || more !== null ? " and others" : ""}.
    </p>
  );
}
