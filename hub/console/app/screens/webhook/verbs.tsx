import { NumberInput } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { api, ifUnchanged, read } from "../../api/client.ts";
import type { Answer } from "../../api/schema.ts";
import { newSecret } from "../../forms/webhook-secret.ts";
import { VerbButton } from "../../verbs/verb-button.tsx";

type Webhook = Answer<"getWebhook">;
type Delivery = Answer<"listWebhookDeliveries">["items"][number];

const changesOf = (id: string): string[] => ["webhooks", `webhooks/${id}`];

interface Part {
  readonly one: Webhook;
}

export const WebhookVerbs = ({ one, onSecret }: Part & { readonly onSecret: (secret: string) => void }): ReactNode => (
  <>
    <Test one={one} />
    <Replay one={one} />
    <Switch key={String(one.active)} one={one} />
    <Rotate one={one} onSecret={onSecret} />
    <Delete one={one} />
  </>
);

const OVERLAP_HOURS = 24;
const MOST_HOURS = 168;

/** The request contains the webhook's new secret, so it carries no idempotency key: the hub would store the secret with such a key. */
function Rotate({ one, onSecret }: Part & { readonly onSecret: (secret: string) => void }): ReactNode {
  return (
    <VerbButton
      verb="Rotate the secret"
      what={`of ${one.url}`}
      effect="The hub signs with a new secret, which this browser makes and shows once. Until the time below the hub signs with the old secret too, so that the receiver can take the new one."
      asksReason={false}
      right="manage_hub"
      changes={changesOf(one.id)}
      run={async ({ values: { hours } }) => {
        const secret = newSecret((bytes) => crypto.getRandomValues(bytes));
        const body = { secret, overlap_seconds: Math.round(Number(hours) * 3600) };
        await read(api.POST("/api/v1/admin/webhooks/{id}/rotate-secret", { params: { path: { id: one.id } }, body }));
        onSecret(secret);
      }}
      initial={{ hours: OVERLAP_HOURS as number | string }}
      fields={({ values, set }) => (
        <NumberInput
          label="Hours during which the old secret signs too"
          min={0}
          max={MOST_HOURS}
          clampBehavior="strict"
          value={values.hours}
          onChange={(hours) => set({ hours })}
          data-autofocus
        />
      )}
    />
  );
}

function Delete({ one }: Part): ReactNode {
  const navigate = useNavigate();
  return (
    <VerbButton
      verb="Delete"
      what={`the webhook ${one.url}`}
      effect="The hub sends nothing more to the webhook, and forgets its secret and its deliveries, also those that wait."
      final
      asksReason={false}
      right="manage_hub"
      changes={["webhooks"]}
      run={async () => {
        await read(api.DELETE("/api/v1/admin/webhooks/{id}", { params: { path: { id: one.id } } }));
        await navigate({ to: "/webhooks" });
      }}
    />
  );
}

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

/** The hub disables a webhook whose deliveries fail for a long time, and a person enables it again. */
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
