import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { api, read } from "../../api/client.ts";
import { question } from "../../api/query-client.ts";
import type { Answer } from "../../api/schema.ts";
import type { Column } from "../../parts/data-table.tsx";
import { Facts } from "../../parts/facts.tsx";
import { choicesOf, FilterSelect, Filters } from "../../parts/filters.tsx";
import { LongList } from "../../parts/long-list.tsx";
import { Note } from "../../parts/note.tsx";
import { PageHead, Section } from "../../parts/page-head.tsx";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { ShownOnce } from "../../parts/shown-once.tsx";
import { Answered, Empty } from "../../parts/states.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { DELIVERY_STATES, webhookRoute } from "./route.ts";
import { ReplayOne, WebhookVerbs } from "./verbs.tsx";

type Webhook = Answer<"getWebhook">;
type Delivery = Answer<"listWebhookDeliveries">["items"][number];
type State = (typeof DELIVERY_STATES)[number];
const PAGE = 100;

const webhookOf = (id: string) =>
  question([`webhooks/${id}`, "webhooks"], ["webhook", id], (signal) =>
    read(api.GET("/api/v1/admin/webhooks/{id}", { params: { path: { id } }, signal })),
  );

/** Shows one webhook: its deliveries, and the verbs to test it and to send events again. */
export function Page(): ReactNode {
  const { id } = webhookRoute.useParams();
  const query = useQuery(webhookOf(id));
  return (
    <Answered query={query} what="the webhook">
      {(one) => <Body key={id} one={one} />}
    </Answered>
  );
}

function Body({ one }: { readonly one: Webhook }): ReactNode {
  const [secret, setSecret] = useState<string | null>(null);
  return (
    <>
      <PageHead
        title={one.url}
        beside={<StatusBadge status={one.active ? "active" : "disabled"} />}
        below={one.description}
        actions={<WebhookVerbs one={one} onSecret={setSecret} />}
      />
      {secret === null ? null : (
        <ShownOnce title="Copy the new signing secret now: it is shown once" secret={secret}>
          The receiver checks the signature of each event with it.
        </ShownOnce>
      )}
      {one.disabled_reason === null ? null : (
        <Note tone="bad" title="The hub sends nothing to the webhook">
          {one.disabled_reason}
        </Note>
      )}
      <Section title="The webhook">
        <Facts
          facts={[
            ["Events", one.types.join(", ")],
            ["Deliveries that wait", String(one.pending)],
            ["Deliveries that were given up", String(one.dead)],
            ["Made", <RelativeTime key="made" at={one.created_at} />],
            ["Changed", <RelativeTime key="changed" at={one.updated_at} />],
          ]}
        />
      </Section>
      <Deliveries id={one.id} />
    </>
  );
}

const columnsOf = (webhookId: string): readonly Column<Delivery>[] => [
  { id: "state", head: "State", cell: ({ state }) => <StatusBadge status={state} /> },
  { id: "type", head: "Event", cell: ({ event_type: type }) => type ?? "test" },
  { id: "subject", head: "About", wide: true, cell: ({ event_subject: about }) => <code>{about ?? "-"}</code> },
  { id: "tries", head: "Tries", align: "end", cell: ({ attempts }) => attempts },
  {
    id: "last",
    head: "Last answer",
    wide: true,
    cell: ({ last_status: status, last_error: error }) => (
      <span title={error ?? ""}>{[status, error].filter((part) => part !== null).join(" ") || "-"}</span>
    ),
  },
  { id: "next", head: "Next try", wide: true, cell: ({ next_attempt_at: at }) => <RelativeTime at={at} none="-" /> },
  { id: "made", head: "Since", cell: ({ created_at: at }) => <RelativeTime at={at} /> },
  { id: "replay", head: "Verb", align: "end", cell: (one) => <ReplayOne webhookId={webhookId} one={one} /> },
];

function Deliveries({ id }: { readonly id: string }): ReactNode {
  const { state } = webhookRoute.useSearch();
  const navigate = useNavigate({ from: "/webhooks/$id" });
  return (
    <>
      <Filters onClear={undefined}>
        <FilterSelect
          label="Deliveries"
          value={state}
          choices={choicesOf(DELIVERY_STATES)}
          onChange={(value) => void navigate({ search: { state: value as State | undefined }, replace: true })}
        />
      </Filters>
      <LongList<Delivery>
        what="deliveries"
        about={[`webhooks/${id}`, "webhooks"]}
        listKey={["webhook", id, "deliveries", state]}
        ask={(cursor, signal) =>
          read(
            api.GET("/api/v1/admin/webhooks/{id}/deliveries", {
              params: { path: { id }, query: { state, limit: PAGE, cursor } },
              signal,
            }),
          )
        }
        columns={columnsOf(id)}
        rowKey={(one) => one.id}
        empty={
          <Empty title="No delivery is in this list" kind={state === undefined ? "none" : "filtered"}>
            Send a test, or wait for an event.
          </Empty>
        }
      />
    </>
  );
}
