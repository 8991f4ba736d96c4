import { Radio, Switch, Textarea, TextInput } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { api, read } from "../../api/client.ts";
import { HubError } from "../../api/hub-error.ts";
import type { Answer } from "../../api/schema.ts";
import { serverNow } from "../../api/server-clock.ts";
import { FieldGroup, FormOf, Wide } from "../../forms/form-parts.tsx";
import { SiteSelect, SkuSelect } from "../../forms/site-choices.tsx";
import { type Form, useForm } from "../../forms/use-form.ts";
import { notify } from "../../frame/notice-list.ts";
import { PageHead } from "../../parts/page-head.tsx";
import { type AllocationValues, checkAllocation, keysBody, labelsOf } from "./allocation-form.ts";
import { newAllocationRoute } from "./route.ts";
import { WhichKeys } from "./which-keys.tsx";

/** The API identifies a node by its id, but a person knows the hostname, which hosts of different sites may share. */
async function nodeIdOf(hostname: string, site: string): Promise<string> {
  const query = { hostname, site_id: site === "" ? undefined : site, limit: 2 };
  const { items } = await read(api.GET("/api/v1/admin/nodes", { params: { query } }));
  const [node, another] = items;
  if (node !== undefined && another === undefined) return node.id;
  const detail =
    node === undefined
      ? `No node has the hostname ${hostname}. Check the spelling in the list of nodes.`
      : `Nodes of several sites have the hostname ${hostname}. Choose the site too.`;
  throw new HubError({ status: 404, code: "no_single_node", title: "Not one node", detail });
}

type Headers = { readonly "Idempotency-Key": string };

async function create(values: AllocationValues, headers: Headers): Promise<readonly Answer<"createAllocation">[]> {
  const terms = {
    tenant: values.tenant.trim(),
    login_user: values.login_user.trim(),
    ...keysBody(values),
    description: null,
    root: values.root,
    labels: labelsOf(values.labels),
    ends_at: values.ends_at === "" ? null : new Date(values.ends_at).toISOString(),
  };
  const place = { sku_id: values.sku_id, site_id: values.site_id };
  const params = { header: headers };
  if (values.by === "several") {
    const prefix = values.name_prefix.trim();
    const body = {
      ...place,
      ...terms,
      count: Number(values.count),
      same_rack: values.same_rack,
      name_prefix: prefix === "" ? null : prefix,
    };
    return (await read(api.POST("/api/v1/admin/allocation-batches", { params, body }))).items;
  }
  const where = values.by === "node" ? { node_id: await nodeIdOf(values.hostname.trim(), values.site_id) } : place;
  const body = { ...where, ...terms, name: null, allow_unhealthy_machine: false };
  return [await read(api.POST("/api/v1/admin/allocations", { params, body }))];
}

/** The form that gives one node or several nodes to a tenant. */
export function Page(): ReactNode {
  const { hostname } = newAllocationRoute.useSearch();
  const navigate = useNavigate();
  const form = useForm<AllocationValues, readonly Answer<"createAllocation">[]>({
    initial: {
      by: "node",
      hostname: hostname ?? "",
      sku_id: "",
      site_id: "",
      count: "2",
      same_rack: false,
      name_prefix: "",
      tenant: "",
      login_user: "",
      keys_by: "given",
      ssh_keys: "",
      ssh_key_ids: [],
      ssh_key_group_ids: [],
      root: false,
      labels: "",
      ends_at: "",
    },
    check: (values) => checkAllocation(values, serverNow()),
    send: create,
    changes: ["allocations", "nodes"],
    onTaken: (taken, { tenant }) => {
      const [one, another] = taken;
      const what = another === undefined ? `${one?.hostname} is` : `${taken.length} nodes are`;
      notify({ tone: "good", text: `${what} allocated to ${tenant.trim()}.` });
      if (one !== undefined && another === undefined) void navigate({ to: "/allocations/$id", params: { id: one.id } });
      else void navigate({ to: "/allocations", search: { tenant: tenant.trim() } });
    },
    what: "the new allocation",
  });
  return (
    <>
      <PageHead
        title="New allocation"
        below="Give one or several nodes to a tenant. The agent makes the tenant's account on each host."
      />
      <FormOf form={form} label="New allocation" send="Allocate">
        <WhichNode form={form} />
        <WhichTenant form={form} />
        <WhichKeys form={form} />
        <FieldGroup title="More" about="All of these may stay as they are.">
          <Switch
            label="Root"
            description="The account may run every command as root. The hub then deploys the node anew after the tenant, unless its profile says otherwise."
            {...form.flag("root")}
          />
          <TextInput
            type="datetime-local"
            label="Ends by itself"
            description="In your browser's time zone. Without it, somebody releases the allocation."
            {...form.text("ends_at")}
          />
          <Wide>
            <Textarea
              label="Labels"
              description="Your own notes, one a line, for example order=4711."
              autosize={false}
              rows={2}
              {...form.text("labels")}
            />
          </Wide>
        </FieldGroup>
      </FormOf>
    </>
  );
}

const WhichNode = ({ form }: { readonly form: Form<AllocationValues> }): ReactNode => (
  <FieldGroup
    title="Which node"
    about="Name a node, or let the hub take a free one. Only an active, schedulable node can be allocated."
  >
    <Wide>
      <Radio.Group
        aria-label="Which node"
        value={form.values.by}
        onChange={(by) => form.set({ by: by as AllocationValues["by"] })}
      >
        <Radio value="node" label="This node" mb={4} />
        <Radio value="sku" label="Any free node of a SKU at a site" mb={4} />
        <Radio value="several" label="Several free nodes of a SKU at a site, all or none" />
      </Radio.Group>
    </Wide>
    {form.values.by === "node" ? (
      <>
        <TextInput label="Hostname" spellCheck={false} autoComplete="off" {...form.text("hostname")} />
        <SiteSelect
          none="Any site"
          description="Only needed if hosts of several sites have the name."
          {...form.text("site_id")}
        />
      </>
    ) : (
      <>
        <SkuSelect {...form.text("sku_id")} />
        <SiteSelect {...form.text("site_id")} />
        {form.values.by === "several" && <Several form={form} />}
      </>
    )}
  </FieldGroup>
);

const Several = ({ form }: { readonly form: Form<AllocationValues> }): ReactNode => (
  <>
    <TextInput label="Number of nodes" inputMode="numeric" autoComplete="off" {...form.text("count")} />
    <TextInput
      label="Name prefix"
      description="worker makes names such as worker-x7k2mp. Without it, an instance has the name of its host."
      autoComplete="off"
      {...form.text("name_prefix")}
    />
    <Switch label="One rack" description="Take only nodes of one rack." {...form.flag("same_rack")} />
  </>
);

const WhichTenant = ({ form }: { readonly form: Form<AllocationValues> }): ReactNode => (
  <FieldGroup title="Who gets it">
    <TextInput
      label="Tenant"
      description="The customer or project that gets the node."
      autoComplete="off"
      name="tenant"
      value={form.values.tenant}
      error={form.errors.tenant}
      onChange={({ currentTarget: { value } }) => form.set({ tenant: value, ssh_key_ids: [], ssh_key_group_ids: [] })}
    />
    <TextInput
      label="Account"
      description="The account that the agent makes on the host."
      spellCheck={false}
      autoComplete="off"
      {...form.text("login_user")}
    />
  </FieldGroup>
);
