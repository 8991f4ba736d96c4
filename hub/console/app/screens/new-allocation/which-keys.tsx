import { Radio, Textarea } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useKeysOfTyped } from "../../api/tenant-keys.ts";
import { FieldGroup, Wide } from "../../forms/form-parts.tsx";
import { StoredChoice } from "../../forms/stored-choice.tsx";
import type { Form } from "../../forms/use-form.ts";
import { Awaited } from "../../parts/states.tsx";
import type { AllocationValues } from "./allocation-form.ts";

/** The SSH keys of the allocation's account: stored keys and groups of the tenant, or keys that only this allocation has. */
export const WhichKeys = ({ form }: { readonly form: Form<AllocationValues> }): ReactNode => (
  <FieldGroup
    title="SSH keys"
    about="The tenant logs in with them. The account follows each change of stored keys and groups; keys that are given here never change."
  >
    <Wide>
      <Radio.Group
        aria-label="Which SSH keys"
        value={form.values.keys_by}
        onChange={(by) => form.set({ keys_by: by as AllocationValues["keys_by"] })}
      >
        <Radio value="given" label="These keys" mb={4} />
        <Radio value="stored" label="Stored keys and groups of the tenant" />
      </Radio.Group>
    </Wide>
    {form.values.keys_by === "stored" ? (
      <StoredKeys form={form} />
    ) : (
      <Wide>
        <Textarea
          label="Public SSH keys"
          description="One a line, from the files that end in .pub."
          rows={4}
          spellCheck={false}
          {...form.text("ssh_keys")}
        />
      </Wide>
    )}
  </FieldGroup>
);

function StoredKeys({ form }: { readonly form: Form<AllocationValues> }): ReactNode {
  const { keys, groups, error, retry } = useKeysOfTyped(form.values.tenant);
  if (form.values.tenant.trim() === "") return <Wide>Give the tenant first.</Wide>;
  if (keys === undefined || groups === undefined)
    return (
      <Wide>
        <Awaited what="the tenant's keys and groups" error={error} retry={retry} />
      </Wide>
    );
  return (
    <>
      <Wide>
        <StoredChoice
          what="groups"
          stored={groups.map(({ id, name, description, key_ids }) => ({
            id,
            name,
            about: `${description === "" ? "" : `${description}, `}keys: ${key_ids.length}`,
          }))}
          chosen={form.values.ssh_key_group_ids}
          error={form.errors.ssh_key_group_ids}
          onChange={(ssh_key_group_ids) => form.set({ ssh_key_group_ids })}
        />
      </Wide>
      <Wide>
        <StoredChoice
          what="keys"
          stored={keys.map(({ id, name, fingerprint }) => ({ id, name, about: fingerprint }))}
          chosen={form.values.ssh_key_ids}
          error={form.errors.ssh_key_ids}
          onChange={(ssh_key_ids) => form.set({ ssh_key_ids })}
        />
        <Link to="/ssh-keys">Look at the stored keys</Link>
      </Wide>
    </>
  );
}
