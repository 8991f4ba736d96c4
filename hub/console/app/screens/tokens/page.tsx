import { Button } from "@mantine/core";
import { Link, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import { api, read } from "../../api/client.ts";
import type { Answer } from "../../api/schema.ts";
import { useSiteName } from "../../api/sites.ts";
import type { Column } from "../../parts/data-table.tsx";
import { choicesOf, FilterSelect, Filters, FilterText } from "../../parts/filters.tsx";
import { TokenLink } from "../../parts/links.tsx";
import { LongList } from "../../parts/long-list.tsx";
import { PageHead } from "../../parts/page-head.tsx";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { Empty } from "../../parts/states.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { ROLES, tokensRoute } from "./route.ts";

type Row = Answer<"listTokens">["items"][number];
type Search = ReturnType<typeof tokensRoute.useSearch>;

const PAGE = 100;
const NO_FILTER = { name: undefined, role: undefined } as const satisfies Search;

const columnsOf = (siteName: (id: string | null) => string): readonly Column<Row>[] => [
  { id: "name", head: "Token", cell: ({ id, name }) => <TokenLink id={id}>{name}</TokenLink> },
  { id: "end", head: "Ends with", wide: true, cell: ({ last_four: four }) => <code>{four ?? "-"}</code> },
  { id: "role", head: "Role", cell: ({ role }) => role },
  {
    id: "sites",
    head: "Sites",
    wide: true,
    cell: ({ site_ids: ids }) => (ids === null ? "the whole hub" : ids.map(siteName).join(", ")),
  },
  { id: "tenant", head: "Tenant", wide: true, cell: ({ tenant }) => tenant ?? "-" },
  { id: "status", head: "Status", cell: ({ status }) => <StatusBadge status={status} /> },
  { id: "used", head: "Last used", wide: true, cell: ({ last_used_at: at }) => <RelativeTime at={at} /> },
  { id: "expires", head: "Expires", cell: ({ expires_at: at }) => <RelativeTime at={at} /> },
  { id: "by", head: "Made by", wide: true, cell: ({ created_by: by }) => by ?? "-" },
];

/** Lists API tokens: who has each one, what it may do, and when it expires. */
export function Page(): ReactNode {
  const search = tokensRoute.useSearch();
  const navigate = useNavigate({ from: "/tokens" });
  const siteName = useSiteName();
  const columns = useMemo(() => columnsOf(siteName), [siteName]);
  const change = (changes: Partial<Search>): void =>
    void navigate({ search: (before) => ({ ...before, ...changes }), replace: true });
  const filtered = Object.values(search).some((value) => value !== undefined);
  return (
    <>
      <PageHead
        title="Tokens"
        below="Programs, and people without a provider of OpenID Connect, sign in with a token."
        actions={<Button renderRoot={(props) => <Link to="/tokens/new" {...props} />}>New token</Button>}
      />
      <Filters onClear={filtered ? () => change(NO_FILTER) : undefined}>
        <FilterText find label="Name" value={search.name} onChange={(name) => change({ name })} />
        <FilterSelect
          label="Role"
          value={search.role}
          choices={choicesOf(ROLES)}
          onChange={(role) => change({ role: role as Search["role"] })}
        />
      </Filters>
      <LongList<Row>
        what="tokens"
        about={["tokens"]}
        listKey={["tokens", "list", search]}
        ask={(cursor, signal) =>
          read(api.GET("/api/v1/admin/tokens", { params: { query: { ...search, limit: PAGE, cursor } }, signal }))
        }
        columns={columns}
        rowKey={({ id }) => id}
        empty={
          <Empty title="No token matches" kind="filtered">
            The name has to be complete. Take a filter back, or clear all of them.
          </Empty>
        }
      />
    </>
  );
}
