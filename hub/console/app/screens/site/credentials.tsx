import { NativeSelect, PasswordInput, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { api, read } from "../../api/client.ts";
import type { Body } from "../../api/schema.ts";
import { Facts } from "../../parts/facts.tsx";
import { Note } from "../../parts/note.tsx";
import { Section } from "../../parts/page-head.tsx";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { words } from "../../parts/tones.ts";
import { VerbButton } from "../../verbs/verb-button.tsx";
import type { Typed } from "../../verbs/verb-dialog.tsx";
import { type Site, warningsOf } from "./site-questions.ts";

const state = (there: boolean): ReactNode =>
  there ? <StatusBadge status="ok">set</StatusBadge> : <StatusBadge status="incomplete">missing</StatusBadge>;

/** Says which credentials the site has. Nobody can read a stored credential back, so the screen shows only whether each credential is set. */
export function Credentials({ site }: { readonly site: Site }): ReactNode {
  const { data } = useQuery(warningsOf(site.id));
  const { maas_token: token, power, deploy_password: password } = site.credentials;
  return (
    <Section title="Credentials" aside={<WriteCredentials site={site} />}>
      <Facts
        facts={[
          ["API key of MAAS", state(token)],
          ["Login of the BMCs", state(power)],
          ["Deploy password", state(password)],
        ]}
      />
      {(data?.items ?? []).map(({ credential, override_id: override, message, since, reason }) => (
        <Note
          key={`${credential} ${override} ${reason}`}
          tone={reason === "failing" ? "bad" : "attention"}
          title={`${words(credential)}: ${words(reason)}`}
        >
          {message} Since <RelativeTime at={since} />.
        </Note>
      ))}
    </Section>
  );
}

const EMPTY = { token: "", user: "", pass: "", driver: "ipmi" as "ipmi" | "redfish", password: "" };

/** The request contains only the credentials that the person typed, so that a person can replace one credential alone. */
const bodyOf = ({ token, user, pass, driver, password }: typeof EMPTY): Body<"writeMaasSiteCredentials"> => ({
  ...(token === "" ? {} : { maas_token: token.trim() }),
  ...(user === "" && pass === "" ? {} : { power: { user, pass, driver } }),
  ...(password === "" ? {} : { deploy_password: password }),
});

const WriteCredentials = ({ site }: { readonly site: Site }): ReactNode => (
  <VerbButton
    verb="Set credentials"
    what={`of ${site.name}`}
    effect="A field that stays empty keeps its credential. Nobody can read a credential back."
    asksReason={false}
    right="configure_sites"
    changes={["sites", `maas-sites/${site.id}`]}
    run={({ headers, values }) =>
      read(
        api.POST("/api/v1/admin/maas-sites/{id}/credentials", {
          params: { path: { id: site.id }, header: headers },
          body: bodyOf(values),
        }),
      )
    }
    initial={EMPTY}
    fields={(typed) => <Fields site={site} {...typed} />}
  />
);

const Fields = ({ site, values, set }: { readonly site: Site } & Typed<typeof EMPTY>): ReactNode => (
  <>
    <PasswordInput
      label="API key of a MAAS administrator"
      description="In MAAS under the user's preferences: three parts with colons between them."
      mb="xs"
      autoComplete="off"
      data-autofocus
      value={values.token}
      onChange={(event) => set({ token: event.currentTarget.value })}
    />
    <TextInput
      label="User of the BMCs"
      mb="xs"
      autoComplete="off"
      value={values.user}
      onChange={(event) => set({ user: event.currentTarget.value })}
    />
    <PasswordInput
      label="Password of the BMCs"
      mb="xs"
      autoComplete="new-password"
      value={values.pass}
      onChange={(event) => set({ pass: event.currentTarget.value })}
    />
    <NativeSelect
      label="Protocol of the BMCs"
      mb="xs"
      data={["ipmi", "redfish"]}
      value={values.driver}
      onChange={(event) => set({ driver: event.currentTarget.value === "redfish" ? "redfish" : "ipmi" })}
    />
    <PasswordInput
      label={`Password of the account ${site.deploy_user} on hosts`}
      description="At least 8 characters."
      autoComplete="new-password"
      value={values.password}
      onChange={(event) => set({ password: event.currentTarget.value })}
    />
  </>
);
