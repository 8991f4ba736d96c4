import type { ReactNode } from "react";
import type { Answer } from "../../api/schema.ts";
import { useTenantKeys } from "../../api/tenant-keys.ts";
import { Facts } from "../../parts/facts.tsx";
import { KeyGroupLink, SshKeyLink } from "../../parts/links.tsx";
import { Section } from "../../parts/page-head.tsx";
import parts from "../../parts/parts.module.css";
import { Refresh } from "../../parts/refresh.tsx";
import { SyncBadge } from "../../parts/sync-badge.tsx";

type Allocation = Answer<"getAllocation">;

/**
 * Shows the SSH keys of an allocation's account, the stored keys and groups that the allocation names, and whether a change of the keys is still to
 * reach the account.
 */
export function KeysOf({ one }: { readonly one: Allocation }): ReactNode {
  return (
    <>
      {one.key_sync === null ? null : <Named one={one} sync={one.key_sync} />}
      <Section title="SSH keys of the account">
        <Keys keys={one.ssh_keys} />
        {one.key_sync === null ? (
          <p className={parts.prose}>The request gave the keys themselves, so they never change.</p>
        ) : null}
      </Section>
    </>
  );
}

function Named({
  one,
  sync,
}: {
  readonly one: Allocation;
  readonly sync: NonNullable<Allocation["key_sync"]>;
}): ReactNode {
  const { keys, groups } = useTenantKeys(one.tenant);
  const nameOf = (all: readonly { id: string; name: string }[] | undefined, id: string): string | undefined =>
    all?.find((entry) => entry.id === id)?.name;
  return (
    <Section title="Stored keys and groups" aside={<Refresh queryKey={["allocation", one.id]} />}>
      <Facts
        facts={[
          [
            "Accounts",
            <>
              <SyncBadge status={sync.status} /> {sync.reason}
            </>,
          ],
          ...one.ssh_key_group_ids.map(
            (id) => [`Group ${nameOf(groups, id) ?? id.slice(0, 8)}`, <KeyGroupLink key={id} id={id} />] as const,
          ),
          ...one.ssh_key_ids.map(
            (id) => [`Key ${nameOf(keys, id) ?? id.slice(0, 8)}`, <SshKeyLink key={id} id={id} />] as const,
          ),
        ]}
      />
    </Section>
  );
}

function Keys({ keys }: { readonly keys: readonly string[] }): ReactNode {
  const shown = keys.map((key) => key.split(/\s+/));
  return (
    <Facts
      facts={shown.map(([type = "", blob = "", ...comment]) => [
        comment.join(" ") || "without a comment",
        <code key={blob}>
          {type} ...{blob.slice(-16)}
        </code>,
      ])}
    />
  );
}
