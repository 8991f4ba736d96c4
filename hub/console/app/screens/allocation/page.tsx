import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { api, read } from "../../api/client.ts";
import { question } from "../../api/query-client.ts";
import type { Answer } from "../../api/schema.ts";
import { useSiteName } from "../../api/sites.ts";
import { Facts } from "../../parts/facts.tsx";
import { NodeLink, OperationLink } from "../../parts/links.tsx";
import { Note } from "../../parts/note.tsx";
import { PageHead, Section } from "../../parts/page-head.tsx";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { Answered } from "../../parts/states.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { words } from "../../parts/tones.ts";
import { AllocationVerbs } from "../../verbs/allocation-verbs.tsx";
import { KeysOf } from "./keys.tsx";
import { OnlineRepair } from "./online-repair.tsx";
import { allocationRoute } from "./route.ts";

type Allocation = Answer<"getAllocation">;

const allocationOf = (id: string) =>
  question([`allocations/${id}`, "allocations"], ["allocation", id], (signal) =>
    read(api.GET("/api/v1/admin/allocations/{id}", { params: { path: { id } }, signal })),
  );

/** Shows one allocation: who uses the node, the allocation's state, and the verbs that end it or repair its machine. */
export function Page(): ReactNode {
  const { id } = allocationRoute.useParams();
  const query = useQuery(allocationOf(id));
  return (
    <Answered query={query} what="the allocation">
      {(one) => <Body one={one} />}
    </Answered>
  );
}

function Body({ one }: { readonly one: Allocation }): ReactNode {
  const siteName = useSiteName();
  const labels = Object.entries(one.labels);
  return (
    <>
      <PageHead
        title={`${one.hostname} for ${one.tenant}`}
        beside={<StatusBadge status={one.status} />}
        below={
          <>
            allocation <code>{one.id}</code>
          </>
        }
        actions={
          <>
            <AllocationVerbs one={one} />
            <OnlineRepair one={one} />
          </>
        }
      />
      {one.error_message === null ? null : (
        <Note tone="bad" title={`The agent could not make the account (${one.error_code})`}>
          {one.error_message} {one.next_action === null ? null : <strong>Next: {one.next_action}</strong>}
        </Note>
      )}
      {one.error_message === null && one.next_action !== null ? (
        <Note tone="busy" title="What the allocation waits for">
          {one.next_action}
        </Note>
      ) : null}
      <Section title="The allocation">
        <Facts
          facts={[
            [
              "Node",
              <NodeLink key="node" id={one.node_id}>
                {one.hostname}
              </NodeLink>,
            ],
            ["Site", siteName(one.site_id)],
            ["Tenant", one.tenant],
            ["Account", <code key="user">{one.login_user}</code>],
            ["Root", one.root ? "yes, the account may run every command as root" : "no"],
            ["Other ways to root", one.root_by.length === 0 ? undefined : one.root_by.map(words).join(", ")],
            [
              "Made",
              <>
                <RelativeTime at={one.created_at} /> by {one.created_by}
              </>,
            ],
            ["Active since", <RelativeTime key="active" at={one.active_at} none="not yet" />],
            ["Ends by itself", <RelativeTime key="ends" at={one.ends_at} none="no, somebody releases it" />],
            ["Ended", one.ended_at === null ? undefined : <RelativeTime key="ended" at={one.ended_at} />],
            ["Why it ended", one.end_reason ?? undefined],
            ["Forced", one.end_forced ? "yes" : undefined],
            [
              "Turnover",
              one.decommission_id === null ? undefined : (
                <OperationLink key="turnover" kind="decommission" id={one.decommission_id} />
              ),
            ],
            [
              "Sanitization records",
              <Link key="records" to="/records" search={{ allocation_id: one.id }}>
                of this allocation
              </Link>,
            ],
          ]}
        />
      </Section>
      {labels.length === 0 ? null : (
        <Section title="Labels">
          <Facts facts={labels} />
        </Section>
      )}
      <KeysOf one={one} />
    </>
  );
}
