import type { ReactNode } from "react";
import { api, ifUnchanged, read } from "../../api/client.ts";
import type { Answer } from "../../api/schema.ts";
import { VerbButton } from "../../verbs/verb-button.tsx";

type Webhook = Answer<"getWebhook">;
type Delivery = Answer<"listWebhookDeliveries">["items"][number];

const changesOf = (id: string): string[] => ["webhooks", `webhooks/${id}`];

export const WebhookVerbs = ({ one }: { readonly one: Webhook }): ReactNode => (
  <>
    <Test one={one} />
    <Replay one={one} />
    <Switch one={one} />
  </>
);

const Test = ({ one }: { readonly one: Webhook }): ReactNode => (
  <VerbButton
    verb="Send a test"
    what={`to ${one.url}`}
    effect="The hub sends one event without a meaning, which the list of deliveries shows."
    asksReason={false}
    right="manage_hub"
    changes={changesOf(one.id)}
    run={({ headers }) =>
      read(api.POST("/api/v1/admin/webhooks/{id}/test", { params: { path: { id: one.id }, header: headers } }))
    }
  />
);

const Replay = ({ one }: { readonly one: Webhook }): ReactNode => (
  <VerbButton
    verb="Send again"
    what={`what ${one.url} did not get`}
    effect={`The hub sends the ${one.dead} deliveries again that it gave up.`}
    asksReason={false}
    right="manage_hub"
    disabledBecause={one.dead === 0 ? "The hub has given up no delivery." : null}
    changes={changesOf(one.id)}
    run={({ headers }) =>
      read(
        api.POST("/api/v1/admin/webhooks/{id}/replay", {
          params: { path: { id: one.id }, header: headers },
          body: { dead: true },
        }),
      )
    }
  />
);

/** The hub disables a webhook that fails for long; a person enables it again. */
const Switch = ({ one }: { readonly one: Webhook }): ReactNode => (
  <VerbButton
    verb={one.active ? "Disable" : "Enable"}
    what={`the webhook ${one.url}`}
    effect={one.active ? "The hub sends no event until somebody enables the webhook." : "The hub sends events again."}
    asksReason={false}
    right="manage_hub"
    changes={changesOf(one.id)}
    run={async () => {
      const path = { id: one.id };
      const header = ifUnchanged(await api.GET("/api/v1/admin/webhooks/{id}", { params: { path } }));
      return read(
        api.PATCH("/api/v1/admin/webhooks/{id}", { params: { path, header }, body: { active: !one.active } }),
      );
    }}
  />
);

export const ReplayOne = ({ webhookId, one }: { readonly webhookId: string; readonly one: Delivery }): ReactNode => (
  <VerbButton
    verb="Send again"
    what={`the event ${one.event_type ?? "test"} of ${one.id.slice(0, 8)}`}
    effect="The hub sends this event again."
    asksReason={false}
    right="manage_hub"
    disabledBecause={one.state === "pending" ? "The delivery waits for its next try." : null}
    changes={changesOf(webhookId)}
    run={({ headers }) =>
      read(
        api.POST("/api/v1/admin/webhooks/{id}/deliveries/{delivery_id}/replay", {
          params: { path: { id: webhookId, delivery_id: one.id }, header: headers },
        }),
      )
    }
  />
);
