import { Button } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { api, read } from "../../api/client.ts";
import { question } from "../../api/query-client.ts";
import type { Answer } from "../../api/schema.ts";
import { useMay } from "../../api/session.ts";
import { useSiteName } from "../../api/sites.ts";
import { SSH_KEYS, useTenantKeys } from "../../api/tenant-keys.ts";
import { FOR_A_FORM, readVersioned } from "../../api/versioned.ts";
import { AllocationsWith } from "../../parts/allocations-with.tsx";
import { Facts } from "../../parts/facts.tsx";
import { SshKeyLink, SshKeysLink } from "../../parts/links.tsx";
import { Note } from "../../parts/note.tsx";
import { PageHead, Section } from "../../parts/page-head.tsx";
import parts from "../../parts/parts.module.css";
import { Refresh } from "../../parts/refresh.tsx";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { Answered } from "../../parts/states.tsx";
import { SyncBadge } from "../../parts/sync-badge.tsx";
import { ChangeGroup, DeleteGroup } from "./change.tsx";
import { sshKeyGroupRoute } from "./route.ts";

type Group = Answer<"getSshKeyGroup">;

const ask = (id: string, signal: AbortSignal) =>
  api.GET("/api/v1/admin/ssh-key-groups/{id}", { params: { path: { id } }, signal });
const groupOf = (id: string) =>
  question([SSH_KEYS, "allocations"], [SSH_KEYS, "group", id], (signal) => read(ask(id, signal)));
const groupToEdit = (id: string) =>
  question([], ["edit", "ssh-key-group", id], (signal) => readVersioned(ask(id, signal)));

/** Shows one SSH key group: its keys, whether the accounts have these keys, and the allocations that follow the group's changes. */
export function Page(): ReactNode {
  const { id } = sshKeyGroupRoute.useParams();
  const query = useQuery(groupOf(id));
  return (
    <Answered query={query} what="the key group">
      {(one) => <Body key={id} one={one} />}
    </Answered>
  );
}

function Body({ one }: { readonly one: Group }): ReactNode {
  const may = useMay();
  const [open, { toggle, close }] = useDisclosure(false);
  return (
    <>
      <PageHead
        title={one.name}
        beside={<SyncBadge status={one.status} />}
        below={`Key group of ${one.tenant}${one.description === "" ? "" : `: ${one.description}`}`}
        actions={
          <>
            <Refresh queryKey={[SSH_KEYS]} />
            {may("allocate") ? (
              <Button variant="default" onClick={toggle}>
                {open ? "No change" : "Change"}
              </Button>
            ) : null}
            <DeleteGroup one={one} />
          </>
        }
      />
      {one.status_reason === null ? null : (
        <Note tone={one.status === "error" ? "bad" : "busy"} title="Not all accounts have the keys of the group">
          {one.status_reason}
        </Note>
      )}
      {open ? <Editing id={one.id} onDone={close} /> : null}
      <AboutGroup one={one} />
      <Members one={one} />
      <AllocationsWith by={{ ssh_key_group_id: one.id }} />
    </>
  );
}

/** The form shows the key group as it was when the form was opened, and the hub refuses the change if the group has changed since. */
function Editing({ id, onDone }: { readonly id: string; readonly onDone: () => void }): ReactNode {
  const query = useQuery({ ...groupToEdit(id), ...FOR_A_FORM });
  return (
    <Answered query={query} what="the key group">
      {(group) => <ChangeGroup of={group} onDone={onDone} />}
    </Answered>
  );
}

function AboutGroup({ one }: { readonly one: Group }): ReactNode {
  const siteName = useSiteName();
  return (
    <Section title="The group">
      <Facts
        facts={[
          [
            "Tenant",
            <SshKeysLink key="tenant" search={{ tenant: one.tenant }}>
              {one.tenant}
            </SshKeysLink>,
          ],
          ["Sites", one.site_ids?.map(siteName).join(", ") ?? "all"],
          ["Open allocations", String(one.allocations)],
          ...one.sites.map(
            ({ site_id: id, status }) => [`At ${siteName(id)}`, <SyncBadge key={id} status={status} />] as const,
          ),
          [
            "Made",
            <>
              <RelativeTime at={one.created_at} /> by {one.created_by}
            </>,
          ],
          ["Changed", <RelativeTime key="changed" at={one.updated_at} />],
        ]}
      />
    </Section>
  );
}

function Members({ one }: { readonly one: Group }): ReactNode {
  const { keys } = useTenantKeys(one.tenant);
  const nameOf = (id: string): string | undefined => keys?.find((key) => key.id === id)?.name;
  return (
    <Section title="Members">
      {one.key_ids.length === 0 ? (
        <p className={parts.prose}>The group has no keys.</p>
      ) : (
        <ul>
          {one.key_ids.map((id) => (
            <li key={id}>
              <SshKeyLink id={id}>{nameOf(id)}</SshKeyLink>{" "}
              <code>{keys?.find((key) => key.id === id)?.fingerprint}</code>
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}
