import { TextInput } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { api, read } from "../../api/client.ts";
import type { Answer } from "../../api/schema.ts";
import { SSH_KEYS } from "../../api/tenant-keys.ts";
import type { Versioned } from "../../api/versioned.ts";
import { keyName } from "../../forms/tenant-checks.ts";
import { Following } from "../../parts/allocations-with.tsx";
import { VerbButton } from "../../verbs/verb-button.tsx";

type Key = Answer<"getSshKey">;

/** Renames the SSH key; the hub refuses if the key has changed since the dialog opened. */
export const RenameKey = ({ of: { data: one, header } }: { readonly of: Versioned<Key> }): ReactNode => (
  <VerbButton
    verb="Rename"
    what={`the key ${one.name}`}
    effect="The key gets another name. Accounts and groups keep the key."
    asksReason={false}
    right="allocate"
    changes={[SSH_KEYS]}
    run={async ({ values: { name } }) => {
      const wrong = keyName(name);
      if (wrong !== undefined) throw new Error(`The name ${wrong}.`);
      const params = { path: { id: one.id }, header };
      return read(api.PATCH("/api/v1/admin/ssh-keys/{id}", { params, body: { name: name.trim() } }));
    }}
    initial={{ name: one.name }}
    fields={({ values: { name }, set }) => (
      <TextInput
        label="New name"
        data-autofocus
        autoComplete="off"
        error={keyName(name)}
        value={name}
        onChange={(event) => set({ name: event.currentTarget.value })}
      />
    )}
  />
);

export function DeleteKey({ one }: { readonly one: Key }): ReactNode {
  const navigate = useNavigate();
  return (
    <VerbButton
      verb="Delete"
      what={`the key ${one.name}`}
      effect="The key leaves its groups, and the accounts that have it. The hub refuses this if an account would be left without a key. It ends no session that is open on a host."
      final
      asksReason={false}
      right="allocate"
      changes={[SSH_KEYS, "allocations"]}
      run={async () => {
        await read(api.DELETE("/api/v1/admin/ssh-keys/{id}", { params: { path: { id: one.id } } }));
        await navigate({ to: "/ssh-keys", search: { tenant: one.tenant } });
      }}
      initial={{ areKnown: false }}
      fields={({ set }) => <Following by={{ ssh_key_id: one.id }} onKnown={() => set({ areKnown: true })} />}
      isReady={({ areKnown }) => areKnown}
    />
  );
}
