import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { api, read } from "../../api/client.ts";
import { question } from "../../api/query-client.ts";
import type { Answer } from "../../api/schema.ts";
import { type Column, DataTable } from "../../parts/data-table.tsx";
import { Facts } from "../../parts/facts.tsx";
import { NodeLink } from "../../parts/links.tsx";
import { PageHead, Section } from "../../parts/page-head.tsx";
import { absolute, RelativeTime } from "../../parts/relative-time.tsx";
import { Answered } from "../../parts/states.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { VerbButton } from "../../verbs/verb-button.tsx";

type Authority = Answer<"getAuthority">;
type Missing = Authority["missing"][number];

const authority = question(["authority", "nodes"], ["authority"], (signal) =>
  read(api.GET("/api/v1/admin/authority", { signal })),
);

const MISSING: readonly Column<Missing>[] = [
  { id: "host", head: "Host", cell: ({ id, hostname }) => <NodeLink id={id}>{hostname}</NodeLink> },
  { id: "status", head: "Status", cell: ({ status }) => <StatusBadge status={status} /> },
  { id: "seen", head: "Last heard", cell: ({ last_seen_at: at }) => <RelativeTime at={at} /> },
];

/** Shows the hub's CA and its key for signing orders: which of them are in force, and how far a rotation has come. */
export function Page(): ReactNode {
  const query = useQuery(authority);
  return (
    <Answered query={query} what="the hub's keys">
      {(one) => <Body one={one} />}
    </Answered>
  );
}

function Body({ one }: { readonly one: Authority }): ReactNode {
  const { current, next, hosts, informed, missing } = one;
  return (
    <>
      <PageHead
        title="Hub's keys"
        beside={
          <StatusBadge
            status={next === null ? "in force" : "rotation under way"}
            tone={next === null ? "good" : "busy"}
          />
        }
        below={`${informed} of ${hosts} hosts know ${next === null ? "the keys in force" : `the next keys, of generation ${next.generation}`}.`}
        actions={<Verbs one={one} />}
      />
      <Keys title="In force" generation={one.generation} keys={current} />
      {next === null ? null : <Keys title="Announced" generation={next.generation} keys={next} />}
      {missing.length === 0 ? null : (
        <Section title="Hosts that do not know them yet">
          <DataTable label="Hosts without the keys" columns={MISSING} rows={missing} rowKey={({ id }) => id} />
        </Section>
      )}
    </>
  );
}

const Keys = ({
  title,
  generation,
  keys,
}: {
  readonly title: string;
  readonly generation: number;
  readonly keys: Authority["current"];
}): ReactNode => (
  <Section title={title}>
    <Facts
      facts={[
        ["Generation", String(generation)],
        ["CA valid until", absolute(keys.ca_not_after)],
        ["SHA-256 of the CA", <code key="ca">{keys.ca_sha256}</code>],
        ["Order key", <code key="order">{keys.order_key}</code>],
      ]}
    />
  </Section>
);

const changes = ["authority"];
const WHAT = "the rotation of the hub's keys";

function Verbs({ one: { next, hosts, informed } }: { readonly one: Authority }): ReactNode {
  if (next === null)
    return (
      <VerbButton
        verb="Begin"
        what={WHAT}
        effect="The hub makes the next CA and order key, and announces them to hosts. Nothing is signed with them yet."
        right="manage_hub"
        changes={changes}
        run={({ reason, headers }) =>
          read(api.POST("/api/v1/admin/authority/rotation", { params: { header: headers }, body: { reason } }))
        }
      />
    );
  const force = informed < hosts;
  return (
    <>
      <VerbButton
        verb={force ? "Force" : "Finish"}
        what={WHAT}
        effect={
          force
            ? `The next keys become valid although ${hosts - informed} of ${hosts} hosts do not know them. Hosts that are off follow when they come back.`
            : "The next keys become valid on every hub. The old ones sign nothing from then on."
        }
        final
        right="manage_hub"
        changes={changes}
        run={({ reason, headers }) =>
          read(
            api.POST("/api/v1/admin/authority/rotation/finish", {
              params: { header: headers },
              body: { reason, force },
            }),
          )
        }
      />
      <VerbButton
        verb="Abandon"
        what={WHAT}
        effect="The rotation ends, and hosts forget the next keys."
        right="manage_hub"
        changes={changes}
        run={({ reason, headers }) =>
          read(api.POST("/api/v1/admin/authority/rotation/abort", { params: { header: headers }, body: { reason } }))
        }
      />
    </>
  );
}
