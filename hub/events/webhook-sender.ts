import type { Log } from "../../shared/log.ts";
import type { Secret } from "../../shared/secret.ts";
import { eq } from "../db/orm.ts";
import {
  type ClaimedDelivery,
  claimDeliveries,
  type DeliveryEnding,
  endAttempt,
  putBack,
} from "../db/queries/webhook-deliveries.ts";
import { fanOut } from "../db/queries/webhook-fan-out.ts";
import { disableWebhook, lockWebhook } from "../db/queries/webhooks.ts";
import { type DomainEventRow, domainEvents } from "../db/schema/index.ts";
import type { Db, InTx } from "../db/tx.ts";
import { webhookAttempts } from "../metrics/counted/webhooks.ts";
import { SECRET_PATHS, SecretError, type SecretStore } from "../secrets/port.ts";
import { pause } from "../timing/pause.ts";
import { WakeSignal } from "../timing/wake-signal.ts";
import { toCloudEvent } from "./cloud-event.ts";
import { type Attempted, judgeAttempt, reasonOf } from "./delivery-policy.ts";
import type { EventFeed } from "./event-feed.ts";
import { WebhookClient } from "./webhook-request.ts";
import { signingKeys } from "./webhook-secret.ts";
import { signatureOf } from "./webhook-signature.ts";

/** The time in seconds for which a hub claims a webhook delivery; this time is longer than the longest attempt to send the delivery. */
const LEASE_SECONDS = 60;
const PER_WEBHOOK = 4;
const LOOK_EVERY_MS = 1_000;
/** The delay in seconds before the next attempt to send a delivery, if the secret store could not return the webhook's secret. */
const SECRET_AGAIN_SECONDS = 30;

export interface WebhookSenderOptions {
  readonly db: Db;
  readonly inTx: InTx;
  readonly secrets: SecretStore;
  readonly feed: EventFeed;
  readonly log: Log;
}

/** The services that an attempt to deliver an event needs, besides the delivery itself. The signal `closing` aborts when the hub stops. */
interface Sending extends WebhookSenderOptions {
  readonly client: WebhookClient;
  readonly closing: AbortSignal;
}

/**
 * Delivers domain events to webhooks, each at least once (decision P5). Any number of hubs share the work of delivering events. If a hub is killed
 * during an attempt to deliver an event, another hub repeats the attempt with the same `webhook-id`. One loop writes the database rows of webhook
 * deliveries, and another loop sends the deliveries. Because the webhook sender writes and sends deliveries in two separate loops, neither a flood of
 * events nor one webhook's backlog delays the sending of deliveries.
 */
export function startWebhookSender(options: WebhookSenderOptions): { close(): Promise<void> } {
  const { db, inTx, feed, log } = options;
  const { wake: news, leave } = feed.listen("webhooks of the hub");
  const due = new WakeSignal();
  const closing = new AbortController();
  const client = new WebhookClient();
  const sending: Sending = { ...options, client, closing: closing.signal };
  const atWork = new Set<Promise<void>>();
  const write = async (): Promise<boolean> => {
    const written = await fanOut(db, inTx);
    if (written) due.raise();
    return written;
  };
  const send = async (): Promise<boolean> => {
    const claimed = await claimDeliveries(inTx, { perWebhook: PER_WEBHOOK, leaseSeconds: LEASE_SECONDS });
    for (const one of claimed) {
      const work = deliver(sending, one)
        .catch((error: unknown) => log.warn("a delivery could not be recorded", { webhook: one.webhook.id, error }))
        .finally(() => {
          atWork.delete(work);
          due.raise();
        });
      atWork.add(work);
    }
    return claimed.length > 0;
  };
  const loop = async (step: () => Promise<boolean>, wake: WakeSignal): Promise<void> => {
    while (!closing.signal.aborted) {
      try {
        if (!(await step())) await wake.wait(LOOK_EVERY_MS);
      } catch (error) {
        log.warn("events could not be delivered to webhooks", { error });
        await pause(LOOK_EVERY_MS, closing.signal);
      }
    }
  };
  const loops = [loop(write, news), loop(send, due)];
  return {
    close: async () => {
      closing.abort();
      for (const wake of [news, due]) wake.raise();
      await Promise.all(loops);
      await Promise.allSettled(atWork);
      client.close();
      leave();
    },
  };
}

async function deliver(sending: Sending, { delivery, webhook }: ClaimedDelivery): Promise<void> {
  const { db, inTx, log } = sending;
  const [event] = await db.select().from(domainEvents).where(eq(domainEvents.seq, delivery.eventSeq));
  if (event === undefined) {
    webhookAttempts.add({ outcome: "dead" });
    const gone = { state: "dead", lastStatus: null, lastError: "The event was removed because of its age" } as const;
    return void (await inTx((tx) => endAttempt(tx, delivery, gone)));
  }
  const keys = await readKeys(sending, webhook.id);
  if (keys === null) {
    webhookAttempts.add({ outcome: "put_back" });
    const why = "The hub could not read the webhook's secret; its log has the reason";
    return inTx((tx) => putBack(tx, delivery, { inSeconds: SECRET_AGAIN_SECONDS, why }));
  }
  const attempted = await sending.client.post(webhook.url, signed(event, keys), sending.closing);
  if (!attempted.answered && sending.closing.aborted) {
    webhookAttempts.add({ outcome: "put_back" });
    return inTx((tx) => putBack(tx, delivery, { inSeconds: 0, why: "The hub stopped before the receiver answered" }));
  }
  const ending = endingOf(attempted, delivery.attempts);
  webhookAttempts.add({ outcome: ending.state === "pending" ? "retry" : ending.state });
  const failed = await inTx(async (tx) => {
    const current = ending.gone ? await lockWebhook(tx, webhook.id) : null;
    // If the answer 410 came from a former URL of the webhook, the hub sends the delivery to the webhook's present URL.
    const byFormer = ending.gone && current?.url !== webhook.url;
    const held = await endAttempt(tx, delivery, byFormer ? { ...ending, state: "pending", inSeconds: 0 } : ending);
    if (held && ending.gone && !byFormer)
      await disableWebhook(tx, webhook.id, "The receiver answered 410: it wants no further events");
    return held && !byFormer && ending.state === "dead";
  });
  if (failed)
    log.warn("a delivery failed for good", { webhook: webhook.id, event: event.id, reason: ending.lastError });
}

function endingOf(attempted: Attempted, attempt: number): DeliveryEnding & { readonly gone: boolean } {
  const verdict = judgeAttempt(attempted, attempt, Math.random());
  const told = {
    lastStatus: attempted.answered ? attempted.status : null,
    lastError: verdict.kind === "delivered" ? null : reasonOf(attempted),
    gone: verdict.kind === "gone",
  };
  if (verdict.kind === "retry") return { ...told, state: "pending", inSeconds: verdict.inSeconds };
  return { ...told, state: verdict.kind === "delivered" ? "delivered" : "dead" };
}

/**
 * Returns the secrets of a webhook; null if the secret store fails. A failure of the secret store does not count as a failed attempt to deliver,
 * because the receiver did not cause the failure.
 */
async function readKeys({ secrets, log }: Sending, webhookId: string): Promise<Secret[] | null> {
  try {
    return signingKeys(await secrets.read(SECRET_PATHS.webhookSecret(webhookId)), new Date());
  } catch (error) {
    if (!(error instanceof SecretError)) throw error;
    log.warn("a webhook's secret could not be read", { webhook: webhookId, error });
    return null;
  }
}

function signed(event: DomainEventRow, keys: readonly Secret[]) {
  const body = JSON.stringify(toCloudEvent(event));
  const sentAt = Math.floor(Date.now() / 1000);
  return {
    body,
    headers: {
      "content-type": "application/cloudevents+json; charset=utf-8",
      "user-agent": "muster-hub",
      "webhook-id": event.id,
      "webhook-timestamp": String(sentAt),
      "webhook-signature": signatureOf(keys, { id: event.id, sentAt, body }),
    },
  };
}
