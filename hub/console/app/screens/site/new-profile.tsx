import { Checkbox, NativeSelect, TextInput } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { api, read } from "../../api/client.ts";
import type { Body } from "../../api/schema.ts";
import { VerbButton } from "../../verbs/verb-button.tsx";
import type { Site } from "./site-questions.ts";

type Turnover = "soft_reset" | "reimage";

/** Makes a profile with the defaults of the API for all that the dialog does not ask. */
export function NewProfile({ site }: { readonly site: Site }): ReactNode {
  const [name, setName] = useState("");
  const [image, setImage] = useState("ubuntu/noble");
  const [turnover, setTurnover] = useState<Turnover>("soft_reset");
  const [roce, setRoce] = useState(true);
  return (
    <VerbButton
      verb="New profile"
      what={`at ${site.name}`}
      effect="A profile says what is installed on hosts, and how a host is cleaned after a tenant. Everything else has the defaults of the API, and the form of the profile changes it."
      asksReason={false}
      right="configure_sites"
      changes={["sites", `maas-sites/${site.id}`]}
      run={({ headers }) =>
        read(
          api.POST("/api/v1/admin/maas-sites/{id}/profiles", {
            params: { path: { id: site.id }, header: headers },
            // The hub has a default for every other field, and the generated type knows no optional ones.
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
    >
      <TextInput
        label="Name"
        description="Small letters, digits and hyphens."
        mb="xs"
        required
        withAsterisk={false}
        pattern="[a-z0-9][a-z0-9\-]*"
        data-autofocus
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <TextInput
        label="Image"
        description="As MAAS names it, for example ubuntu/noble."
        mb="xs"
        required
        withAsterisk={false}
        value={image}
        onChange={(event) => setImage(event.currentTarget.value)}
      />
      <NativeSelect
        label="After a tenant without root"
        mb="xs"
        data={[
          { value: "soft_reset", label: "clean the host in place (soft reset)" },
          { value: "reimage", label: "deploy the host anew (reimage)" },
        ]}
        value={turnover}
        onChange={(event) => setTurnover(event.currentTarget.value as Turnover)}
      />
      <Checkbox
        label="Hosts have RoCE interfaces, whose addresses come from the RoCE rows"
        checked={roce}
        onChange={(event) => setRoce(event.currentTarget.checked)}
      />
    </VerbButton>
  );
}
