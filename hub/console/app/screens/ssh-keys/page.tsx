import { Button, Textarea, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Link, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import { api, read } from "../../api/client.ts";
import type { Answer } from "../../api/schema.ts";
import { useMay } from "../../api/session.ts";
import { useSiteName } from "../../api/sites.ts";
import { SSH_KEYS, type StoredKey } from "../../api/tenant-keys.ts";
import { FieldGroup, FormOf, Wide } from "../../forms/form-parts.tsx";
import { SiteBoxes } from "../../forms/site-boxes.tsx";
import { useForm } from "../../forms/use-form.ts";
import { notify } from "../../frame/notice-list.ts";
import type { Column } from "../../parts/data-table.tsx";
import { Filters, FilterText, SiteFilter } from "../../parts/filters.tsx";
import { SshKeyLink } from "../../parts/links.tsx";
import { LongList } from "../../parts/long-list.tsx";
import { PageHead } from "../../parts/page-head.tsx";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { Empty } from "../../parts/states.tsx";
import { checkKey, type KeyValues, keyBody } from "./key-form.ts";
import { sshKeysRoute } from "./route.ts";

type Search = ReturnType<typeof sshKeysRoute.useSearch>;
const PAGE = 100;
const NO_FILTER = { tenant: undefined, name: undefined, site_id: undefined } as const satisfies Search;

const columnsOf = (siteName: (id: string | null) => string): readonly Column<StoredKey>[] => [
  { id: "name", head: "Key", cell: ({ id, name }) => <SshKeyLink id={id}>{name}</SshKeyLink> },
  { id: "tenant", head: "Tenant", cell: ({ tenant }) => tenant },
  { id: "type", head: "Type", wide: true, cell: ({ type }) => type },
  { id: "fingerprint", head: "Fingerprint", wide: true, cell: ({ fingerprint }) => <code>{fingerprint}</code> },
  { id: "sites", head: "Sites", wide: true, cell: ({ site_ids: ids }) => ids?.map(siteName).join(", ") ?? "all" },
  { id: "made", head: "Stored", cell: ({ created_at: at }) => <RelativeTime at={at} /> },
];

/** Lists the public SSH keys of tenants that the hub stores. */
export function Page(): ReactNode {
  const search = sshKeysRoute.useSearch();
  const navigate = useNavigate({ from: "/ssh-keys" });
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
        title="SSH keys"
        below="Public keys of tenants. Allocations name them, and the accounts follow each change."
        actions={
          <>
            <Button variant="default" renderRoot={(props) => <Link to="/ssh-key-groups" {...props} />}>
              Key groups
            </Button>
            {may("allocate") ? <Button onClick={toggle}>{open ? "No new key" : "New key"}</Button> : null}
          </>
        }
      />
      {open ? <KeyForm tenant={search.tenant ?? ""} /> : null}
      <Filters onClear={filtered ? () => change(NO_FILTER) : undefined}>
        <FilterText find label="Tenant" value={search.tenant} onChange={(tenant) => change({ tenant })} />
        <FilterText label="Name" value={search.name} onChange={(name) => change({ name })} />
        <SiteFilter value={search.site_id} onChange={(site_id) => change({ site_id })} />
      </Filters>
      <LongList<StoredKey>
        what="SSH keys"
        about={[SSH_KEYS]}
        listKey={[SSH_KEYS, "list", search]}
        ask={(cursor, signal) =>
          read(api.GET("/api/v1/admin/ssh-keys", { params: { query: { ...search, limit: PAGE, cursor } }, signal }))
        }
        columns={columns}
        rowKey={({ id }) => id}
        empty={
          <Empty
            title={filtered ? "The filter leaves out all keys" : "The hub keeps no SSH key yet"}
            kind={filtered ? "filtered" : "none"}
          >
            {filtered
              ? "Tenant and name have to be complete. Take a filter back, or clear all of them."
              : "An allocation can also have keys of its own, which never change."}
          </Empty>
        }
      />
    </>
  );
}

function KeyForm({ tenant }: { readonly tenant: string }): ReactNode {
  const navigate = useNavigate();
  const form = useForm<KeyValues, Answer<"createSshKey">>({
    initial: { name: "", tenant, public_key: "", site_ids: [] },
    check: checkKey,
    send: (values, header) => read(api.POST("/api/v1/admin/ssh-keys", { params: { header }, body: keyBody(values) })),
    changes: [SSH_KEYS],
    onTaken: ({ id, name }) => {
      notify({ tone: "good", text: `The key ${name} is stored.` });
      void navigate({ to: "/ssh-keys/$id", params: { id } });
    },
    what: "the new SSH key",
  });
  const typed = { spellCheck: false, autoComplete: "off" } as const;
  return (
    <FormOf form={form} label="New key" send="Store the key">
      <FieldGroup title="New key" about="The key itself never changes afterwards. Its name may.">
        <TextInput
          label="Tenant"
          description="The customer or project whose key it is."
          {...typed}
          {...form.text("tenant")}
        />
        <TextInput label="Name" description="No other key of the tenant has it." {...typed} {...form.text("name")} />
        <Wide>
          <Textarea
            label="Public key"
            description="One line, from the file that ends in .pub. Never give a private key to anybody."
            rows={3}
            {...typed}
            {...form.text("public_key")}
          />
        </Wide>
      </FieldGroup>
      <FieldGroup title="Where" about="Without a chosen site the key may be used at all sites.">
        <Wide>
          <SiteBoxes
            chosen={form.values.site_ids}
            error={form.errors.site_ids}
            onChange={(site_ids) => form.set({ site_ids })}
          />
        </Wide>
      </FieldGroup>
    </FormOf>
  );
}
