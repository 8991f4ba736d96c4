import { TextInput } from "@mantine/core";
import type { ReactNode } from "react";
import type { TenantKeys } from "../api/tenant-keys.ts";
import { Awaited } from "../parts/states.tsx";
import { FieldGroup, Wide } from "./form-parts.tsx";
import type { GroupValues } from "./key-group-form.ts";
import { SiteBoxes } from "./site-boxes.tsx";
import { StoredChoice } from "./stored-choice.tsx";
import type { Form } from "./use-form.ts";

interface Props {
  readonly form: Form<GroupValues>;
  /** The tenant's stored SSH keys that the console has read so far. */
  readonly stored: Pick<TenantKeys, "keys" | "error" | "retry">;
  /** True if the form asks for the tenant; false for an existing SSH key group, because the tenant of a key group never changes. */
  readonly asksTenant: boolean;
}

/** The fields of a key group. */
export const KeyGroupFields = ({ form, stored, asksTenant }: Props): ReactNode => (
  <>
    <FieldGroup title="The group">
      {asksTenant ? (
        <TextInput
          label="Tenant"
          description="The customer or project whose keys they are."
          autoComplete="off"
          name="tenant"
          value={form.values.tenant}
          error={form.errors.tenant}
          onChange={({ currentTarget: { value } }) => form.set({ tenant: value, key_ids: [] })}
        />
      ) : null}
      <TextInput
        label="Name"
        description="No other group of the tenant has it."
        autoComplete="off"
        {...form.text("name")}
      />
      <TextInput label="Description" description="For people." autoComplete="off" {...form.text("description")} />
    </FieldGroup>
    <FieldGroup title="Members" about="At most 32 keys. The accounts of all allocations that name the group have them.">
      <Wide>
        {form.values.tenant.trim() === "" ? (
          "Give the tenant first."
        ) : stored.keys === undefined ? (
          <Awaited what="the tenant's keys" error={stored.error} retry={stored.retry} />
        ) : (
          <StoredChoice
            what="keys"
            stored={stored.keys.map(({ id, name, fingerprint }) => ({ id, name, about: fingerprint }))}
            chosen={form.values.key_ids}
            error={form.errors.key_ids}
            onChange={(key_ids) => form.set({ key_ids })}
          />
        )}
      </Wide>
    </FieldGroup>
    <FieldGroup
      title="Where"
      about="Without a chosen site the group may be used at all sites. Later the limit can name other sites, but not be taken back."
    >
      <Wide>
        <SiteBoxes
          chosen={form.values.site_ids}
          error={form.errors.site_ids}
          onChange={(site_ids) => form.set({ site_ids })}
        />
      </Wide>
    </FieldGroup>
  </>
);
