import { Checkbox, SegmentedControl, Textarea, TextInput } from "@mantine/core";
import type { ReactNode } from "react";
import { useState } from "react";
import { api, read } from "../../api/client.ts";
import { FieldGroup, FormOf, Wide } from "../../forms/form-parts.tsx";
import { ProfileSelect, SiteSelect, SkuSelect } from "../../forms/site-choices.tsx";
import { type Form, useForm } from "../../forms/use-form.ts";
import { PageHead } from "../../parts/page-head.tsx";
import {
  ACCEPTABLE,
  type Adopted,
  type AdoptValues,
  adoptBody,
  checkAdoption,
  DIFFERENCES,
  type Difference,
} from "./adopt-form.ts";
import { PlanOfAdoption } from "./plan.tsx";
import { adoptRoute } from "./route.ts";

const EMPTY: Omit<AdoptValues, "site_id"> = {
  profile_id: "",
  sku_id: "",
  by: "filter",
  tags: "",
  pool: "",
  zone: "",
  hostname_prefix: "",
  hostnames: "",
  system_ids: "",
  accepted: [],
};

/** The hub's plan for an adoption, with the values of the form that the plan was made for. A changed form needs a new plan. */
interface Planned {
  readonly values: AdoptValues;
  readonly answer: Adopted;
}

/** Adopts hosts that MAAS has deployed without Muster, so that they become nodes of Muster. The hub's plan comes before the request. */
export function Page(): ReactNode {
  const search = adoptRoute.useSearch();
  const [planned, setPlanned] = useState<Planned | null>(null);
  const form = useForm<AdoptValues, Adopted>({
    initial: { ...EMPTY, site_id: search.site_id ?? "" },
    check: checkAdoption,
    send: (values) =>
      read(
        api.POST("/api/v1/admin/maas-sites/{id}/adoptions", {
          params: { path: { id: values.site_id } },
          body: adoptBody(values, null),
        }),
      ),
    changes: [],
    onTaken: (answer, values) => setPlanned({ values, answer }),
    what: "the plan of the adoption",
  });
  const isPresent = planned !== null && JSON.stringify(planned.values) === JSON.stringify(form.values);
  return (
    <>
      <PageHead
        title="Adopt hosts"
        below="An adoption makes hosts that MAAS deployed without Muster nodes. It deploys nothing, and changes nothing in MAAS or on the host."
      />
      <FormOf form={form} label="Adopt hosts" send="Show the plan">
        <Where form={form} />
        <SegmentedControl
          mb="md"
          aria-label="How the machines are chosen"
          value={form.values.by}
          onChange={(by) => form.set({ by: by as AdoptValues["by"] })}
          data={[
            { value: "filter", label: "All that a filter selects" },
            { value: "names", label: "Named machines" },
          ]}
        />
        {form.values.by === "filter" ? <ByFilter form={form} /> : <ByNames form={form} />}
        <Accepted form={form} />
      </FormOf>
      {planned !== null && isPresent ? (
        <PlanOfAdoption key={JSON.stringify(planned.values)} values={planned.values} plan={planned.answer} />
      ) : null}
    </>
  );
}

type Part = { readonly form: Form<AdoptValues> };
const typed = { spellCheck: false, autoComplete: "off" } as const;

const Where = ({ form }: Part): ReactNode => (
  <FieldGroup
    title="Where"
    about="The profile decides how the host is cleaned after a tenant, and what a reimage installs."
  >
    <SiteSelect
      {...form.text("site_id")}
      onChange={(event) => form.set({ site_id: event.currentTarget.value, profile_id: "" })}
    />
    <ProfileSelect siteId={form.values.site_id} none="The default profile of the site" {...form.text("profile_id")} />
    <SkuSelect description="What kind of hosts they are." {...form.text("sku_id")} />
  </FieldGroup>
);

const ByFilter = ({ form }: Part): ReactNode => (
  <FieldGroup title="Deployed machines of the site that match every field">
    <TextInput label="Tags" description="With commas; a machine has each." {...typed} {...form.text("tags")} />
    <TextInput label="Resource pool" {...typed} {...form.text("pool")} />
    <TextInput label="Zone" {...typed} {...form.text("zone")} />
    <TextInput label="Beginning of the hostnames" {...typed} {...form.text("hostname_prefix")} />
  </FieldGroup>
);

const ByNames = ({ form }: Part): ReactNode => (
  <FieldGroup title="The machines" about="Separate them by spaces, commas or lines.">
    <Wide>
      <Textarea label="Hostnames in MAAS" rows={4} {...typed} {...form.text("hostnames")} />
    </Wide>
    <Wide>
      <Textarea label="System ids in MAAS" rows={2} {...typed} {...form.text("system_ids")} />
    </Wide>
  </FieldGroup>
);

const Accepted = ({ form }: Part): ReactNode => (
  <FieldGroup
    title="Differences that you accept"
    about="A machine that differs from its profile in another way is refused. The plan says how each machine differs."
  >
    {ACCEPTABLE.map((one) => (
      <Checkbox
        key={one}
        label={DIFFERENCES[one]}
        checked={form.values.accepted.includes(one)}
        onChange={(event) => form.set({ accepted: changed(form.values.accepted, one, event.currentTarget.checked) })}
      />
    ))}
  </FieldGroup>
);

const changed = (accepted: readonly Difference[], one: Difference, is: boolean): readonly Difference[] =>
  is ? [...accepted, one] : accepted.filter((other) => other !== one);
