import { Checkbox, NativeSelect, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { api, read } from "../../api/client.ts";
import { question } from "../../api/query-client.ts";
import { FOR_A_FORM, readVersioned, type Versioned } from "../../api/versioned.ts";
import { FieldGroup, FormOf } from "../../forms/form-parts.tsx";
import { type Form, useForm } from "../../forms/use-form.ts";
import { notify } from "../../frame/notice-list.ts";
import { PageHead } from "../../parts/page-head.tsx";
import { Answered } from "../../parts/states.tsx";
import { words } from "../../parts/tones.ts";
import { type Field, GROUPS, type Profile } from "./profile-fields.ts";
import { checkProfile, type ProfileValues, profilePatch, valuesOf } from "./profile-form.ts";
import { editProfileRoute } from "./route.ts";

const profileToEdit = (id: string, profileId: string) =>
  question([], ["edit", "profile", profileId], (signal) =>
    readVersioned(
      api.GET("/api/v1/admin/maas-sites/{id}/profiles/{profile_id}", {
        params: { path: { id, profile_id: profileId } },
        signal,
      }),
    ),
  );

/** Changes a profile. The hub refuses the change if somebody else has changed the profile since the person opened the form. */
export function Page(): ReactNode {
  const { id, profileId } = editProfileRoute.useParams();
  const query = useQuery({ ...profileToEdit(id, profileId), ...FOR_A_FORM });
  return (
    <Answered query={query} what="the profile">
      {(profile) => <EditProfile key={profileId} profile={profile} />}
    </Answered>
  );
}

function EditProfile({ profile: { data: profile, header } }: { readonly profile: Versioned<Profile> }): ReactNode {
  const navigate = useNavigate();
  const { id, site_id: siteId, name } = profile;
  const form = useForm<ProfileValues, Profile>({
    initial: valuesOf(profile),
    check: checkProfile,
    send: (values) =>
      read(
        api.PATCH("/api/v1/admin/maas-sites/{id}/profiles/{profile_id}", {
          params: { path: { id: siteId, profile_id: id }, header },
          body: profilePatch(profile, values),
        }),
      ),
    changes: ["sites", `maas-sites/${siteId}`],
    onTaken: (taken) => {
      notify({ tone: "good", text: `The profile ${taken.name} is changed.` });
      void navigate({ to: "/sites/$id", params: { id: siteId } });
    },
    what: `the change of the profile ${name}`,
  });
  return (
    <>
      <PageHead
        title={`Change the profile ${name}`}
        below="Only what you change is sent. The probes, the readiness policy and the disks to purge are changed by muster apply."
      />
      <FormOf form={form} label={`Change the profile ${name}`} send="Change the profile">
        {GROUPS.map(({ title, about, fields }) => (
          <FieldGroup key={title} title={title} about={about}>
            {fields.map((field) => (
              <OneField key={field.name} field={field} form={form} />
            ))}
          </FieldGroup>
        ))}
        <FieldGroup title="Use">
          <Checkbox
            label="Active"
            description="A disabled profile takes no new hosts."
            name="is_active"
            checked={form.values.is_active}
            onChange={(event) => form.set({ is_active: event.currentTarget.checked })}
          />
        </FieldGroup>
      </FormOf>
    </>
  );
}

function OneField({ field, form }: { readonly field: Field; readonly form: Form<ProfileValues> }): ReactNode {
  const { kind, name, label, about } = field;
  const set = (value: string | boolean): void => form.set({ [name]: value } as Partial<ProfileValues>);
  const typed = form.values[name];
  if (kind === "flag")
    return (
      <Checkbox
        name={name}
        label={label}
        checked={typed === true}
        onChange={(event) => set(event.currentTarget.checked)}
      />
    );
  const text = { name, label, description: about, error: form.errors[name], value: String(typed) };
  if (kind === "choice")
    return (
      <NativeSelect
        {...text}
        data={field.choices.map((value) => ({ value, label: words(value) }))}
        onChange={(event) => set(event.currentTarget.value)}
      />
    );
  return (
    <TextInput
      {...text}
      spellCheck={false}
      autoComplete="off"
      inputMode={kind === "number" ? "numeric" : undefined}
      onChange={(event) => set(event.currentTarget.value)}
    />
  );
}
