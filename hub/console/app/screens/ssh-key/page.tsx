import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { api } from "../../api/client.ts";
import { question } from "../../api/query-client.ts";
import type { Answer } from "../../api/schema.ts";
import { useSiteName } from "../../api/sites.ts";
import { SSH_KEYS, useTenantKeys } from "../../api/tenant-keys.ts";
import { readVersioned, type Versioned } from "../../api/versioned.ts";
import { AllocationsWith } from "../../parts/allocations-with.tsx";
import { Facts } from "../../parts/facts.tsx";
import { KeyGroupLink, SshKeysLink } from "../../parts/links.tsx";
import { PageHead, Section } from "../../parts/page-head.tsx";
import parts from "../../parts/parts.module.css";
import { Refresh } from "../../parts/refresh.tsx";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { Answered, Awaited } from "../../parts/states.tsx";
import { counted } from "../../parts/tones.ts";
import { sshKeyRoute } from "./route.ts";
import { DeleteKey, RenameKey } from "./verbs.tsx";

type Key = Answer<"getSshKey">;

const keyOf = (id: string) =>
  question([SSH_KEYS], [SSH_KEYS, "one", id], (signal) =>
    readVersioned(api.GET("/api/v1/admin/ssh-keys/{id}", { params: { path: { id } }, signal })),
  );

/** Shows one stored SSH key: the groups that contain it, and the allocations whose accounts lose it when it is deleted. */
export function Page(): ReactNode {
  const { id } = sshKeyRoute.useParams();
  const query = useQuery(keyOf(id));
  return (
    <Answered query={query} what="the SSH key">
      {(key) => <Body key={id} of={key} />}
    </Answered>
  );
}

function Body({ of }: { readonly of: Versioned<Key> }): ReactNode {
  const siteName = useSiteName();
  const { data: one } = of;
  return (
    <>
      <PageHead
        title={one.name}
        below={`SSH key of ${one.tenant}`}
        actions={
          <>
            <Refresh queryKey={[SSH_KEYS]} />
            <RenameKey of={of} />
            <DeleteKey one={one} />
          </>
        }
      />
      <Section title="The key">
        <Facts
          facts={[
            [
              "Tenant",
              <SshKeysLink key="tenant" search={{ tenant: one.tenant }}>
                {one.tenant}
              </SshKeysLink>,
            ],
            ["Type", one.type],
            ["Fingerprint", <code key="fingerprint">{one.fingerprint}</code>],
            ["Sites", one.site_ids?.map(siteName).join(", ") ?? "all"],
            [
              "Stored",
              <>
                <RelativeTime at={one.created_at} /> by {one.created_by}
              </>,
            ],
            ["Changed", <RelativeTime key="changed" at={one.updated_at} />],
            ["Public key", <code key="public">{one.public_key}</code>],
          ]}
        />
      </Section>
      <GroupsWith one={one} />
      <AllocationsWith by={{ ssh_key_id: one.id }} />
    </>
  );
}

function GroupsWith({ one }: { readonly one: Key }): ReactNode {
  const { groups, error, retry } = useTenantKeys(one.tenant);
  const its = groups?.filter(({ key_ids: ids }) => ids.includes(one.id));
  return (
    <Section title="Groups that have the key">
      {its === undefined ? (
        <Awaited what="the groups" error={error} retry={retry} />
      ) : its.length > 0 ? (
        <ul>
          {its.map(({ id, name, allocations }) => (
            <li key={id}>
              <KeyGroupLink id={id}>{name}</KeyGroupLink>, {counted(allocations, "allocation")}
            </li>
          ))}
        </ul>
      ) : (
        <p className={parts.prose}>No group has the key.</p>
      )}
    </Section>
  );
}
