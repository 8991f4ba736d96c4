import { TextInput } from "@mantine/core";
import type { ReactNode } from "react";
import { FieldGroup, Wide } from "./form-parts.tsx";
import type { SiteValues } from "./site-form.ts";
import type { Form } from "./use-form.ts";

const typed = { spellCheck: false, autoComplete: "off" } as const;

type Part = { readonly form: Pick<Form<SiteValues>, "text"> };

/** The form fields for the settings of a site, for a new site and for an existing site. */
export const SiteFields = ({ form }: Part): ReactNode => (
  <>
    <Region form={form} />
    <Networks form={form} />
    <WhatHostsGet form={form} />
  </>
);

const WhatHostsGet = ({ form }: Part): ReactNode => (
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
);

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
