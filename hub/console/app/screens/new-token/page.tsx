import { Button, Radio, TextInput } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { api, read } from "../../api/client.ts";
import type { Answer } from "../../api/schema.ts";
import { FieldGroup, FormOf, Wide } from "../../forms/form-parts.tsx";
import { SiteBoxes } from "../../forms/site-boxes.tsx";
import { type Form, useForm } from "../../forms/use-form.ts";
import { PageHead } from "../../parts/page-head.tsx";
import { ShownOnce } from "../../parts/shown-once.tsx";
import { checkToken, needsTenant, ROLE_WORDS, type Role, type TokenValues, tokenBody } from "./token-form.ts";

type Made = Answer<"createToken">;

/** Makes a token, and shows it once. */
export function Page(): ReactNode {
  const [made, setMade] = useState<Made | null>(null);
  if (made !== null) return <Shown made={made} onNext={() => setMade(null)} />;
  return (
    <>
      <PageHead title="New token" below="The hub keeps only a hash of the token, so it shows the token once." />
      <TokenForm onMade={setMade} />
    </>
  );
}

function TokenForm({ onMade }: { readonly onMade: (made: Made) => void }): ReactNode {
  const form = useForm<TokenValues, Made>({
    initial: { name: "", role: "viewer", site_ids: [], tenant: "", expires_in_days: "90" },
    check: checkToken,
    send: (values) => read(api.POST("/api/v1/admin/tokens", { body: tokenBody(values) })),
    changes: ["tokens"],
    onTaken: onMade,
    what: "the new token",
  });
  return (
    <FormOf form={form} label="New token" send="Make the token">
      <FieldGroup title="What the token is for">
        <TextInput
          label="Name"
          description="The audit names it as the one who acts, for example rack-planner."
          spellCheck={false}
          autoComplete="off"
          {...form.text("name")}
        />
        <TextInput
          label="Days until it expires"
          description="1 to 366. Rotate it before."
          inputMode="numeric"
          autoComplete="off"
          {...form.text("expires_in_days")}
        />
      </FieldGroup>
      <FieldGroup title="What it may do">
        <Wide>
          <Radio.Group aria-label="Role" value={form.values.role} onChange={(role) => form.set({ role: role as Role })}>
            {Object.entries(ROLE_WORDS).map(([role, about]) => (
              <Radio key={role} value={role} mb={5} label={role} description={about} />
            ))}
          </Radio.Group>
        </Wide>
        {needsTenant(form.values.role) ? (
          <TextInput
            label="Tenant"
            description="The token sees only what belongs to this tenant."
            autoComplete="off"
            {...form.text("tenant")}
          />
        ) : null}
      </FieldGroup>
      <SiteLimit form={form} />
    </FormOf>
  );
}

const SiteLimit = ({ form }: { readonly form: Form<TokenValues> }): ReactNode => (
  <FieldGroup title="Where" about="Without a chosen site the token is valid for the whole hub.">
    <Wide>
      <SiteBoxes chosen={form.values.site_ids} onChange={(site_ids) => form.set({ site_ids })} />
    </Wide>
  </FieldGroup>
);

const Shown = ({ made, onNext }: { readonly made: Made; readonly onNext: () => void }): ReactNode => (
  <>
    <PageHead title={made.name} below={`token of the role ${made.role}`} />
    <ShownOnce title="Copy the token now: it is shown once" secret={made.token}>
      Put it into the program's own secret store. If it is lost, rotate the token.
    </ShownOnce>
    <Button variant="default" mr="xs" renderRoot={(props) => <Link to="/tokens" {...props} />}>
      All tokens
    </Button>
    <Button variant="default" onClick={onNext}>
      Another token
    </Button>
  </>
);
