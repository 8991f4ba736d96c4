import { Checkbox, NativeSelect, TextInput } from "@mantine/core";
import type { ReactNode } from "react";
import { api, read } from "../../api/client.ts";
import type { Body } from "../../api/schema.ts";
import { VerbButton } from "../../verbs/verb-button.tsx";
import type { Typed } from "../../verbs/verb-dialog.tsx";
import type { Site } from "./site-questions.ts";

type Turnover = "soft_reset" | "reimage";

const USUAL = { name: "", image: "ubuntu/noble", turnover: "soft_reset" as Turnover, roce: true };

/** Creates a profile, with the API's defaults for all fields that the dialog does not show. */
export const NewProfile = ({ site }: { readonly site: Site }): ReactNode => (
  <VerbButton
    verb="New profile"
    what={`at ${site.name}`}
    effect="A profile says what is installed on hosts, and how a host is cleaned after a tenant. Everything else has the defaults of the API, and the form of the profile changes it."
    asksReason={false}
    right="configure_sites"
    changes={["sites", `maas-sites/${site.id}`]}
    run={({ headers, values: { name, image, turnover, roce } }) =>
      read(
        api.POST("/api/v1/admin/maas-sites/{id}/profiles", {
          params: { path: { id: site.id }, header: headers },
          // The hub has a default for every omitted field of a profile, but the generated type marks none of them as optional.
          body: {
            name: name.trim(),
            distro_series: image.trim(),
            turnover_mode: turnover,
            enable_phase2_roce: roce,
            roce_required: roce,
          } as Body<"createMaasSiteProfile">,
        }),
      )
    }
    initial={USUAL}
    fields={Fields}
  />
);

const Fields = ({ values, set }: Typed<typeof USUAL>): ReactNode => (
  <>
    <TextInput
      label="Name"
      description="Small letters, digits and hyphens."
      mb="xs"
      required
      withAsterisk={false}
      pattern="[a-z0-9][a-z0-9\-]*"
      data-autofocus
      value={values.name}
      onChange={(event) => set({ name: event.currentTarget.value })}
    />
    <TextInput
      label="Image"
      description="As MAAS names it, for example ubuntu/noble."
      mb="xs"
      required
      withAsterisk={false}
      value={values.image}
      onChange={(event) => set({ image: event.currentTarget.value })}
    />
    <NativeSelect
      label="After a tenant without root"
      mb="xs"
      data={[
        { value: "soft_reset", label: "clean the host in place (soft reset)" },
        { value: "reimage", label: "deploy the host anew (reimage)" },
      ]}
      value={values.turnover}
      onChange={(event) => set({ turnover: event.currentTarget.value as Turnover })}
    />
    <Checkbox
      label="Hosts have RoCE interfaces, whose addresses come from the RoCE rows"
      checked={values.roce}
      onChange={(event) => set({ roce: event.currentTarget.checked })}
    />
  </>
);
