import { TextInput } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { api, read } from "../../api/client.ts";
import type { Answer } from "../../api/schema.ts";
import { FieldGroup, FormOf, Wide } from "../../forms/form-parts.tsx";
import { type Form, useForm } from "../../forms/use-form.ts";
import { notify } from "../../frame/notice-list.ts";
import { PageHead } from "../../parts/page-head.tsx";
import { checkSite, NEW_SITE, type SiteValues, siteBody } from "./site-form.ts";

const typed = { spellCheck: false, autoComplete: "off" } as const;

/** Adds a site. The site's own screen then leads on: credentials, probe, profile, RoCE rows, hosts. */
export function Page(): ReactNode {
  const navigate = useNavigate();
  const form = useForm<SiteValues, Answer<"createMaasSite">>({
    initial: NEW_SITE,
    check: checkSite,
    send: (values, header) =>
      read(api.POST("/api/v1/admin/maas-sites", { params: { header }, body: siteBody(values) })),
    changes: ["sites"],
    onTaken: ({ id, name }) => {
      notify({ tone: "good", text: `The site ${name} is added. Next: its credentials, then the probe.` });
      void navigate({ to: "/sites/$id", params: { id } });
    },
    what: "the new site",
  });
  return (
    <>
      <PageHead
        title="Add a site"
        below="A site is one MAAS region with its hosts. Credentials, probe, profile and RoCE rows follow on the site's own screen."
      />
      <FormOf form={form} label="Add a site" send="Add the site">
        <Region form={form} />
        <Networks form={form} />
        <FieldGroup title="What hosts get" about="These are usual values; a profile can replace some of them.">
          <TextInput
            label="Deploy account"
            description="The first boot makes this account, with the deploy password."
            {...typed}
            {...form.text("deploy_user")}
          />
          <TextInput
            label="Interface with the node's address"
            description="The hub reaches a host by this interface's address."
            {...typed}
            {...form.text("deploy_ssh_iface")}
          />
          <TextInput
            label="Upstream DNS servers"
            description="MAAS should forward external names to them; the probe compares."
            {...typed}
            {...form.text("upstream_dns_servers")}
          />
        </FieldGroup>
      </FormOf>
    </>
  );
}

type Part = { readonly form: Form<SiteValues> };

const Region = ({ form }: Part): ReactNode => (
  <FieldGroup title="The region">
    <TextInput
      label="Name"
      description="Small letters, digits and hyphens, for example dc1."
      {...typed}
      {...form.text("name")}
    />
    <TextInput
      label="Region code"
      description="Your own name of the region; nodes have it too."
      {...typed}
      {...form.text("region_code")}
    />
    <Wide>
      <TextInput
        label="Address of MAAS"
        description="For example http://maas.example:5240/MAAS. A region is one site."
        {...typed}
        {...form.text("api_base_url")}
      />
    </Wide>
  </FieldGroup>
);

const Networks = ({ form }: Part): ReactNode => (
  <FieldGroup title="How hosts boot">
    <TextInput
      label="PXE interface of the rack controllers"
      description="Hosts boot over this interface of the rack controllers."
      {...typed}
      {...form.text("pxe_iface")}
    />
    <TextInput
      label="PXE VLAN"
      description="0 where the PXE network is untagged."
      inputMode="numeric"
      {...typed}
      {...form.text("pxe_vlan_vid")}
    />
    <TextInput
      label="PXE interface of the hosts"
      description="The hosts' interface that boots over PXE."
      {...typed}
      {...form.text("node_pxe_iface")}
    />
  </FieldGroup>
);
