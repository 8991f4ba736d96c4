import { useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { api, read } from "../../api/client.ts";
import type { Answer } from "../../api/schema.ts";
import { FormOf } from "../../forms/form-parts.tsx";
import { SiteFields } from "../../forms/site-fields.tsx";
import { checkSite, NEW_SITE, type SiteValues, siteBody } from "../../forms/site-form.ts";
import { useForm } from "../../forms/use-form.ts";
import { notify } from "../../frame/notice-list.ts";
import { PageHead } from "../../parts/page-head.tsx";

/** Adds a site. After a site is added, its own screen leads through the next steps: credentials, probe, profile, RoCE rows, hosts. */
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
        <SiteFields form={form} />
      </FormOf>
    </>
  );
}
