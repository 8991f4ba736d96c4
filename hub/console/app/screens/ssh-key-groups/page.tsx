import { Button } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Link, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useMemo, useState } from "react";
import { api, read } from "../../api/client.ts";
import type { Answer } from "../../api/schema.ts";
import { useMay } from "../../api/session.ts";
import { useSiteName } from "../../api/sites.ts";
import { type KeyGroup, SSH_KEYS, type StoredKey, useKeysOfTyped } from "../../api/tenant-keys.ts";
import { FormOf } from "../../forms/form-parts.tsx";
import { KeyGroupFields } from "../../forms/key-group-fields.tsx";
import { checkGroup, type GroupValues, groupBody, NO_GROUP } from "../../forms/key-group-form.ts";
import { useForm } from "../../forms/use-form.ts";
import { notify } from "../../frame/notice-list.ts";
import type { Column } from "../../parts/data-table.tsx";
import { Filters, FilterText, SiteFilter } from "../../parts/filters.tsx";
import { KeyGroupLink } from "../../parts/links.tsx";
import { LongList } from "../../parts/long-list.tsx";
import { PageHead } from "../../parts/page-head.tsx";
import { Refresh } from "../../parts/refresh.tsx";
import { Empty } from "../../parts/states.tsx";
import { SyncBadge } from "../../parts/sync-badge.tsx";
import { sshKeyGroupsRoute } from "./route.ts";

type Search = ReturnType<typeof sshKeyGroupsRoute.useSearch>;
const PAGE = 100;
const NO_FILTER = { tenant: undefined, name: undefined, site_id: undefined } as const satisfies Search;

const columnsOf = (siteName: (id: string | null) => string): readonly Column<KeyGroup>[] => [
  { id: "name", head: "Group", cell: ({ id, name }) => <KeyGroupLink id={id}>{name}</KeyGroupLink> },
  { id: "tenant", head: "Tenant", cell: ({ tenant }) => tenant },
  {
    id: "status",
    head: "Accounts",
    cell: ({ status, status_reason: why }) => (
      <span title={why ?? ""}>
        <SyncBadge status={status} />
      </span>
    ),
  },
  { id: "keys", head: "Keys", align: "end", wide: true, cell: ({ key_ids: ids }) => ids.length },
  { id: "uses", head: "Allocations", align: "end", wide: true, cell: ({ allocations }) => allocations },
  { id: "sites", head: "Sites", wide: true, cell: ({ site_ids: ids }) => ids?.map(siteName).join(", ") ?? "all" },
  { id: "about", head: "Description", wide: true, cell: ({ description }) => description || "-" },
];

/** Lists the groups of stored SSH keys, and whether the accounts of allocations have the keys of each group. */
export function Page(): ReactNode {
  const search = sshKeyGroupsRoute.useSearch();
  const navigate = useNavigate({ from: "/ssh-key-groups" });
  const siteName = useSiteName();
  const may = useMay();
  const [open, { toggle }] = useDisclosure(false);
  const columns = useMemo(() => columnsOf(siteName), [siteName]);
  const change = (changes: Partial<Search>): void =>
    void navigate({ search: (before) => ({ ...before, ...changes }), replace: true });
  const filtered = Object.values(search).some((value) => value !== undefined);
  return (
    <>
      <PageHead
        title="Key groups"
        below="A group stands for its SSH keys. The accounts of allocations that name it follow each change."
        actions={
          <>
            <Refresh queryKey={[SSH_KEYS]} />
            <Button variant="default" renderRoot={(props) => <Link to="/ssh-keys" {...props} />}>
              SSH keys
            </Button>
            {may("allocate") ? <Button onClick={toggle}>{open ? "No new group" : "New group"}</Button> : null}
          </>
        }
      />
      {open ? <GroupForm tenant={search.tenant ?? ""} /> : null}
      <Filters onClear={filtered ? () => change(NO_FILTER) : undefined}>
        <FilterText find label="Tenant" value={search.tenant} onChange={(tenant) => change({ tenant })} />
        <FilterText label="Name" value={search.name} onChange={(name) => change({ name })} />
        <SiteFilter value={search.site_id} onChange={(site_id) => change({ site_id })} />
      </Filters>
      <LongList<KeyGroup>
        what="key groups"
        about={[SSH_KEYS]}
        listKey={[SSH_KEYS, "groups", search]}
        ask={(cursor, signal) =>
          read(
            api.GET("/api/v1/admin/ssh-key-groups", { params: { query: { ...search, limit: PAGE, cursor } }, signal }),
          )
        }
        columns={columns}
        rowKey={({ id }) => id}
        empty={
          <Empty
            title={filtered ? "The filter leaves out all groups" : "There are no key groups yet"}
            kind={filtered ? "filtered" : "none"}
          >
            {filtered
              ? "Tenant and name have to be complete. Take a filter back, or clear all of them."
              : "Store the keys of a tenant first, and then make a group of them."}
          </Empty>
        }
      />
    </>
  );
}

function GroupForm({ tenant }: { readonly tenant: string }): ReactNode {
  const navigate = useNavigate();
  const [known, setKnown] = useState<readonly StoredKey[]>([]);
  const form = useForm<GroupValues, Answer<"createSshKeyGroup">>({
    initial: { ...NO_GROUP, tenant },
    check: (values) => checkGroup(values, known),
    send: (values, header) =>
      read(api.POST("/api/v1/admin/ssh-key-groups", { params: { header }, body: groupBody(values) })),
    changes: [SSH_KEYS],
    onTaken: ({ id, name }) => {
      notify({ tone: "good", text: `The group ${name} is made.` });
      void navigate({ to: "/ssh-key-groups/$id", params: { id } });
    },
    what: "the new key group",
  });
  const stored = useKeysOfTyped(form.values.tenant);
  if (stored.keys !== undefined && stored.keys !== known) setKnown(stored.keys);
  return (
    <FormOf form={form} label="New group" send="Make the group">
      <KeyGroupFields form={form} stored={stored} asksTenant />
    </FormOf>
  );
}
