import { Checkbox, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { api, read } from "../../api/client.ts";
import { question } from "../../api/query-client.ts";
import type { Answer } from "../../api/schema.ts";
import { FOR_A_FORM, readVersioned, type Versioned } from "../../api/versioned.ts";
import { FieldGroup, FormOf } from "../../forms/form-parts.tsx";
import { ProfileSelect } from "../../forms/site-choices.tsx";
import { SiteFields } from "../../forms/site-fields.tsx";
import { changeOf, checkChange, type SiteChange, sitePatch } from "../../forms/site-form.ts";
import { useForm } from "../../forms/use-form.ts";
import { notify } from "../../frame/notice-list.ts";
import { PageHead } from "../../parts/page-head.tsx";
import { Answered } from "../../parts/states.tsx";
import { editSiteRoute } from "./route.ts";

type Site = Answer<"getMaasSite">;

const siteToEdit = (id: string) =>
  question([], ["edit", "site", id], (signal) =>
    readVersioned(api.GET("/api/v1/admin/maas-sites/{id}", { params: { path: { id } }, signal })),
  );

/** Changes the settings of a site. The hub refuses the change if somebody else has changed the site since the person opened the form. */
export function Page(): ReactNode {
  const { id } = editSiteRoute.useParams();
  const query = useQuery({ ...siteToEdit(id), ...FOR_A_FORM });
  return (
    <Answered query={query} what="the site">
      {(site) => <EditSite key={id} site={site} />}
    </Answered>
  );
}

function EditSite({ site: { data: site, header } }: { readonly site: Versioned<Site> }): ReactNode {
  const navigate = useNavigate();
  const form = useForm<SiteChange, Site>({
    initial: changeOf(site),
    check: checkChange,
    send: (values) =>
      read(
        api.PATCH("/api/v1/admin/maas-sites/{id}", {
          params: { path: { id: site.id }, header },
          body: sitePatch(site, values),
        }),
      ),
    changes: ["sites", `maas-sites/${site.id}`],
    onTaken: ({ id, name }) => {
      notify({ tone: "good", text: `The site ${name} is changed.` });
      void navigate({ to: "/sites/$id", params: { id } });
    },
    what: `the change of the site ${site.name}`,
  });
  return (
    <>
      <PageHead
        title={`Change ${site.name}`}
        below="Only what you change is sent. Credentials, profiles and RoCE rows have their own forms on the site's screen."
      />
      <FormOf form={form} label={`Change ${site.name}`} send="Change the site">
        <SiteFields form={form} />
        <FieldGroup title="How the site works">
          <ProfileSelect
            siteId={site.id}
            label="Default profile"
            none="Stays as it is"
            {...form.text("default_profile_id")}
          />
          <TextInput
            label="Repairs of a machine in 30 days"
            description="So often one machine may be claimed, 1 to 20."
            inputMode="numeric"
            {...form.text("repair_attempt_limit")}
          />
          <Checkbox label="A tenant's report of a fault also asks for a repair" {...form.flag("auto_repair")} />
          <Checkbox label="Active" description="A disabled site takes no new hosts." {...form.flag("is_active")} />
        </FieldGroup>
      </FormOf>
    </>
  );
}
