import { setTimeout as pause } from "node:timers/promises";
import { eq } from "drizzle-orm";
import { z } from "zod";
import { Secret } from "../../shared/secret.ts";
import { type ClaimedDelivery, claimDeliveries, disableWebhook, endAttempt, fanOut } from "../db/queries/webhooks.ts";
import { domainEvents } from "../db/schema/index.ts";
import type { Db, InTx } from "../db/tx.ts";
import type { Log } from "../log.ts";
import { SECRET_PATHS, type SecretStore } from "../secrets/port.ts";
import { toCloudEvent } from "./cloud-event.ts";
import { type Attempted, judgeAttempt, reasonOf } from "./delivery-policy.ts";
import type { EventFeed } from "./event-feed.ts";
import { signatureOf } from "./webhook-signature.ts";

const ANSWER_WITHIN_MS = 15_000;
/** Longer than an attempt may take. */
const LEASE_SECONDS = 60;
const PER_WEBHOOK = 4;
const LOOK_EVERY_MS = 1_000;

export interface WebhookSenderOptions {
  readonly db: Db;
  readonly inTx: InTx;
  readonly secrets: SecretStore;
  readonly feed: EventFeed;
  readonly log: Log;
}

/** The two secrets of a rotation; `previous_until` in ISO 8601. */
const Kept = z.object({ secret: z.string(), previous: z.string().optional(), previous_until: z.string().optional() });

/**
 * Tells webhooks of domain events, at least once each (decision P5). Any number of hubs share the work; what one was at when it was killed is made again
 * by any, with the same `webhook-id`.
 */
export function startWebhookSender(options: WebhookSenderOptions): { close(): Promise<void> } {
  const { db, inTx, feed, log } = options;
  const { bell, leave } = feed.listen();
  const atWork = new Set<Promise<void>>();
  let closed = false;
  const turn = async (): Promise<boolean> => {
    let busy = false;
    while (!closed && (await fanOut(db, inTx))) busy = true;
    const claimed = closed ? [] : await claimDeliveries(db, { perWebhook: PER_WEBHOOK, leaseSeconds: LEASE_SECONDS });
    for (const one of claimed) {
      const work = deliver(options, one)
        .catch((error: unknown) => log.warn("a delivery could not be recorded", { webhook: one.webhook.id, error }))
        .finally(() => {
          atWork.delete(work);
          bell.ring();
        });
      atWork.add(work);
    }
    return busy || claimed.length > 0;
  };
  const loop = async (): Promise<void> => {
    while (!closed) {
      try {
        if (!(await turn())) await bell.heard(LOOK_EVERY_MS);
      } catch (error) {
        log.warn("webhooks could not be told", { error });
        await pause(LOOK_EVERY_MS);
      }
    }
  };
  const looping = loop();
  return {
    close: async () => {
      closed = true;
      bell.ring();
      await looping;
      await Promise.allSettled(atWork);
      leave();
    },
  };
}

async function deliver(options: WebhookSenderOptions, { delivery, webhook }: ClaimedDelivery): Promise<void> {
  const { db, inTx, log } = options;
  const [event] = await db.select().from(domainEvents).where(eq(domainEvents.seq, delivery.eventSeq));
  if (event === undefined) {
    const gone = { state: "dead", lastStatus: null, lastError: "The event was removed, as it was too old" } as const;
    return void (await inTx((tx) => endAttempt(tx, delivery, gone)));
  }
  const attempted = await attempt(options, webhook.id, webhook.url, event.id, JSON.stringify(toCloudEvent(event)));
  const verdict = judgeAttempt(attempted, delivery.attempts, Math.random());
  const told = {
    lastStatus: attempted.answered ? attempted.status : null,
    lastError: verdict.kind === "delivered" ? null : reasonOf(attempted),
  };
  await inTx(async (tx) => {
    if (verdict.kind === "delivered") await endAttempt(tx, delivery, { ...told, state: "delivered" });
    else if (verdict.kind === "retry")
      await endAttempt(tx, delivery, { ...told, state: "pending", inSeconds: verdict.inSeconds });
    else if (await endAttempt(tx, delivery, { ...told, state: "dead" })) {
      log.warn("a delivery failed for good", { webhook: webhook.id, event: event.id, ...told });
      if (verdict.kind === "gone") await disableWebhook(tx, webhook.id, "The receiver answered 410: it wants no more");
    }
  });
}

async function attempt(
  { secrets }: WebhookSenderOptions,
  webhookId: string,
  url: string,
  id: string,
  body: string,
): Promise<Attempted> {
  try {
    const keys = signingKeys(Kept.parse(await secrets.read(SECRET_PATHS.webhookSecret(webhookId))), new Date());
    const sentAt = Math.floor(Date.now() / 1000);
    const answer = await fetch(url, {
      method: "POST",
      headers: {
        "content-type": "application/cloudevents+json; charset=utf-8",
        "user-agent": "muster-hub",
        "webhook-id": id,
        "webhook-timestamp": String(sentAt),
        "webhook-signature": signatureOf(keys, { id, sentAt, body }),
      },
      body,
      // A redirect would carry the signed event to somebody whom no operator named.
      redirect: "manual",
      signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
    });
    await answer.body?.cancel();
    const seconds = Number(answer.headers.get("retry-after") ?? Number.NaN);
    return { answered: true, status: answer.status, retryAfterSeconds: Number.isFinite(seconds) ? seconds : null };
  } catch (error) {
    return { answered: false, reason: whyNot(error) };
  }
}

const signingKeys = ({ secret, previous, previous_until: until }: z.output<typeof Kept>, now: Date): Secret[] =>
  previous !== undefined && until !== undefined && new Date(until) > now
    ? [new Secret(secret), new Secret(previous)]
    : [new Secret(secret)];

/** Never with what was sent. */
function whyNot(error: unknown): string {
  if (!(error instanceof Error)) return "The receiver could not be asked";
  if (error.name === "TimeoutError") return `The receiver did not answer within ${ANSWER_WITHIN_MS / 1000} s`;
  const cause = error.cause instanceof Error ? error.cause.message : error.message;
  return `The receiver could not be asked: ${cause}`;
}
