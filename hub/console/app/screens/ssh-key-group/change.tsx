import { useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { api, read } from "../../api/client.ts";
import type { Answer } from "../../api/schema.ts";
import { SSH_KEYS, useTenantKeys } from "../../api/tenant-keys.ts";
import type { Versioned } from "../../api/versioned.ts";
import { FormOf } from "../../forms/form-parts.tsx";
import { KeyGroupFields } from "../../forms/key-group-fields.tsx";
import { checkGroup, type GroupValues, groupPatch, valuesOf } from "../../forms/key-group-form.ts";
import { useForm } from "../../forms/use-form.ts";
import { notify } from "../../frame/notice-list.ts";
import { Following } from "../../parts/allocations-with.tsx";
import { VerbButton } from "../../verbs/verb-button.tsx";

type Group = Answer<"getSshKeyGroup">;
const CHANGES = [SSH_KEYS, "allocations"] as const;

/** The form that changes the name, the members and the sites of an SSH key group. */
export function ChangeGroup({
  of: { data: one, header },
  onDone,
}: {
  readonly of: Versioned<Group>;
  readonly onDone: () => void;
}): ReactNode {
  const stored = useTenantKeys(one.tenant);
  const form = useForm<GroupValues, Group>({
    initial: valuesOf(one),
    check: (values) => checkGroup(values, stored.keys ?? [], one),
    send: (values) =>
      read(
        api.PATCH("/api/v1/admin/ssh-key-groups/{id}", {
          params: { path: { id: one.id }, header },
          body: groupPatch(one, values),
        }),
      ),
    changes: CHANGES,
    onTaken: ({ name }) => {
      notify({ tone: "good", text: `The group ${name} is changed. The accounts follow.` });
      onDone();
    },
    what: `the change of the key group ${one.name}`,
  });
  return (
    <FormOf form={form} label={`Change ${one.name}`} send="Change the group">
      <KeyGroupFields form={form} stored={stored} asksTenant={false} />
      <Following by={{ ssh_key_group_id: one.id }} />
    </FormOf>
  );
}

export function DeleteGroup({ one }: { readonly one: Group }): ReactNode {
  const navigate = useNavigate();
  return (
    <VerbButton
      verb="Delete"
      what={`the key group ${one.name}`}
      effect="The keys of the group leave the accounts that have them only by this group. The keys themselves stay stored. The hub refuses this if an account would be left without a key."
      final
      asksReason={false}
      right="allocate"
      changes={CHANGES}
      run={async () => {
        await read(api.DELETE("/api/v1/admin/ssh-key-groups/{id}", { params: { path: { id: one.id } } }));
        await navigate({ to: "/ssh-key-groups", search: { tenant: one.tenant } });
      }}
      initial={{ areKnown: false }}
      fields={({ set }) => <Following by={{ ssh_key_group_id: one.id }} onKnown={() => set({ areKnown: true })} />}
      isReady={({ areKnown }) => areKnown}
    />
  );
}
