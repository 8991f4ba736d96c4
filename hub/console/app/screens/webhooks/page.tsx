import { Button, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { type ReactNode, useState } from "react";
import { api, read } from "../../api/client.ts";
import type { Answer } from "../../api/schema.ts";
import { useMay } from "../../api/session.ts";
import { FieldGroup, FormOf, Wide } from "../../forms/form-parts.tsx";
import { useForm } from "../../forms/use-form.ts";
import { newSecret } from "../../forms/webhook-secret.ts";
import type { Column } from "../../parts/data-table.tsx";
import { WebhookLink } from "../../parts/links.tsx";
import { LongList } from "../../parts/long-list.tsx";
import { PageHead } from "../../parts/page-head.tsx";
import { ShownOnce } from "../../parts/shown-once.tsx";
import { Empty } from "../../parts/states.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { checkWebhook, type WebhookValues, webhookBody } from "./webhook-form.ts";

type Row = Answer<"listWebhooks">["items"][number];
const PAGE = 100;

const COLUMNS: readonly Column<Row>[] = [
  { id: "url", head: "Webhook", cell: ({ id, url }) => <WebhookLink id={id}>{url}</WebhookLink> },
  {
    id: "state",
    head: "State",
    cell: ({ active }) => <StatusBadge status={active ? "active" : "disabled"} />,
  },
  { id: "types", head: "Events", wide: true, cell: ({ types }) => types.join(", ") },
  { id: "pending", head: "Waiting", align: "end", wide: true, cell: ({ pending }) => pending },
  { id: "dead", head: "Given up", align: "end", cell: ({ dead }) => dead },
  { id: "about", head: "Description", wide: true, cell: ({ description }) => description || "-" },
];

/** Lists the webhooks, to which the hub sends its events by HTTP. */
export function Page(): ReactNode {
  const may = useMay();
  const [open, { toggle, close }] = useDisclosure(false);
  const [secret, setSecret] = useState<string | null>(null);
  const made = (shown: string): void => {
    setSecret(shown);
    close();
  };
  return (
    <>
      <PageHead
        title="Webhooks"
        below="A webhook gets the hub's events by HTTP, signed, and again until it has taken them."
        actions={may("manage_hub") ? <Button onClick={toggle}>{open ? "No new webhook" : "New webhook"}</Button> : null}
      />
      {secret === null ? null : (
        <ShownOnce title="Copy the signing secret now: it is shown once" secret={secret}>
          The receiver checks the signature of each event with it.
        </ShownOnce>
      )}
      {open ? <WebhookForm onMade={made} /> : null}
      <LongList<Row>
        what="webhooks"
        about={["webhooks"]}
        listKey={["webhooks", "list"]}
        ask={(cursor, signal) =>
          read(api.GET("/api/v1/admin/webhooks", { params: { query: { limit: PAGE, cursor } }, signal }))
        }
        columns={COLUMNS}
        rowKey={({ id }) => id}
        empty={
          <Empty title="The hub has no webhook yet" kind="none">
            Other systems can also follow the events by the event stream.
          </Empty>
        }
      />
    </>
  );
}

function WebhookForm({ onMade }: { readonly onMade: (secret: string) => void }): ReactNode {
  const form = useForm<WebhookValues, Row>({
    initial: { url: "", types: "*", description: "", secret: newSecret((bytes) => crypto.getRandomValues(bytes)) },
    check: checkWebhook,
    send: (values, header) =>
      read(api.POST("/api/v1/admin/webhooks", { params: { header }, body: webhookBody(values) })),
    changes: ["webhooks"],
    onTaken: (_, values) => onMade(values.secret),
    what: "the new webhook",
  });
  const typed = { spellCheck: false, autoComplete: "off" } as const;
  return (
    <FormOf form={form} label="New webhook" send="Make the webhook">
      <FieldGroup title="New webhook">
        <Wide>
          <TextInput
            label="Address"
            description="The hub sends events there by POST."
            {...typed}
            {...form.text("url")}
          />
        </Wide>
        <TextInput
          label="Types of events"
          description="With commas between them; * stands for all but operation.progressed."
          {...typed}
          {...form.text("types")}
        />
        <TextInput label="Description" description="For people." autoComplete="off" {...form.text("description")} />
        <Wide>
          <TextInput
            label="Signing secret"
            description="Made in this browser. The hub never shows it again."
            {...typed}
            {...form.text("secret")}
          />
        </Wide>
      </FieldGroup>
    </FormOf>
  );
}
