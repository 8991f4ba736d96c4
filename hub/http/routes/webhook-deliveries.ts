import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { page } from "../../../shared/api/onboardings.ts";
import { DELIVERY_STATES, WebhookDelivery, WebhookReplay } from "../../../shared/api/webhooks.ts";
import { listDeliveries, replayDeliveries } from "../../db/queries/webhook-deliveries.ts";
import { replayFrom } from "../../db/queries/webhook-fan-out.ts";
import { Position } from "../../events/cloud-event.ts";
import { pageOf, pageQuery, readCursor } from "../page.ts";
import { readRoute, writeRoute } from "../route.ts";
import { mustHavePosition, positionOfCursor } from "./event-position.ts";
import { mustFind, mustLock, WEBHOOKS_PATH, WEBHOOKS_TAG, WebhookParams } from "./webhook-rows.ts";

const Replayed = z.strictObject({ replayed: z.int() });

const listWebhookDeliveries = readRoute({
  operationId: "listWebhookDeliveries",
  method: "GET",
  path: `${WEBHOOKS_PATH}/{id}/deliveries`,
  tag: WEBHOOKS_TAG,
  summary: "List a webhook's deliveries, newest first; state=dead lists those that failed for good",
  permission: "read",
  right: "read_fleet",
  place: "hub",
  params: WebhookParams,
  query: z.strictObject({ ...pageQuery, state: z.enum(DELIVERY_STATES).optional() }),
  status: 200,
  response: page(WebhookDelivery),
  read: async ({ params, query, deps }) => {
    await mustFind(deps.db, params.id);
    const [before] = readCursor(query.cursor, Position) ?? [];
    const rows = await listDeliveries(deps.db, params.id, {
      state: query.state,
      before: before === undefined ? null : BigInt(before),
      limit: query.limit + 1,
    });
    return pageOf(
      rows,
      query.limit,
      ({ delivery }) => [delivery.id.toString()],
      ({ delivery, event }): WebhookDelivery => ({
        id: delivery.id.toString(),
        event_id: event?.id ?? null,
        event_type: event?.type ?? null,
        event_subject: event?.subject ?? null,
        state: delivery.state,
        attempts: delivery.attempts,
        next_attempt_at: delivery.state === "pending" ? delivery.nextAttemptAt.toISOString() : null,
        last_status: delivery.lastStatus,
        last_error: delivery.lastError,
        created_at: delivery.createdAt.toISOString(),
        ended_at: delivery.endedAt?.toISOString() ?? null,
      }),
    );
  },
});

const replayWebhook = writeRoute({
  operationId: "replayWebhook",
  method: "POST",
  path: `${WEBHOOKS_PATH}/{id}/replay`,
  tag: WEBHOOKS_TAG,
  summary: "Deliver all dead deliveries again, or all events after a cursor",
  permission: "write",
  right: "manage_hub",
  place: "hub",
  params: WebhookParams,
  body: WebhookReplay,
  status: 202,
  response: Replayed,
  write: async ({ params, body }, tx) => {
    const webhook = await mustLock(tx, params.id);
    const audit = { target: `webhooks/${params.id}`, details: body };
    if ("dead" in body) return { body: { replayed: await replayDeliveries(tx, params.id, "dead") }, audit };
    const position = positionOfCursor(body.cursor);
    await mustHavePosition(tx, position);
    return { body: { replayed: await replayFrom(tx, webhook, position) }, audit };
  },
});

const replayDelivery = writeRoute({
  operationId: "replayWebhookDelivery",
  method: "POST",
  path: `${WEBHOOKS_PATH}/{id}/deliveries/{delivery_id}/replay`,
  tag: WEBHOOKS_TAG,
  summary: "Deliver one event again, whatever the state of its delivery",
  permission: "write",
  right: "manage_hub",
  place: "hub",
  params: z.strictObject({ ...WebhookParams.shape, delivery_id: z.string().regex(/^\d{1,18}$/) }),
  status: 202,
  response: Replayed,
  write: async ({ params }, tx) => {
    await mustLock(tx, params.id);
    const replayed = await replayDeliveries(tx, params.id, BigInt(params.delivery_id));
    if (replayed === 0) throw new ApiError("not_found", `Webhook ${params.id} has no delivery ${params.delivery_id}.`);
    return { body: { replayed }, audit: { target: `webhooks/${params.id}`, details: params } };
  },
});

export const webhookDeliveryRoutes = [listWebhookDeliveries, replayWebhook, replayDelivery];
