import { randomUUID } from "node:crypto";
import { and, eq, sql } from "drizzle-orm";
import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { page } from "../../../shared/api/onboardings.ts";
import {
  DELIVERY_STATES,
  Webhook,
  WebhookCreate,
  WebhookDelivery,
  WebhookPatch,
  WebhookReplay,
  WebhookRotate,
} from "../../../shared/api/webhooks.ts";
import { recordDomainEvent } from "../../db/queries/domain-events.ts";
import { hasPosition, lastSettled } from "../../db/queries/domain-events-list.ts";
import { countOpen, listDeliveries, readWebhook, replayDeliveries, replayFrom } from "../../db/queries/webhooks.ts";
import { type Webhook as WebhookRow, webhooks } from "../../db/schema/index.ts";
import type { Db, Tx } from "../../db/tx.ts";
import { Position } from "../../events/cloud-event.ts";
import { SECRET_PATHS } from "../../secrets/port.ts";
import { pageOf, pageQuery, readCursor } from "../page.ts";
import { readRoute, Versioned, writeRoute } from "../route.ts";
import { versionOf } from "./rows.ts";

const WebhookParams = z.strictObject({ id: z.uuid() });
const path = "/api/v1/admin/webhooks";
const tag = "webhooks";
const Replayed = z.strictObject({ replayed: z.int() });

const NONE_OPEN = { pending: 0, dead: 0 };
const toWebhook = (row: WebhookRow, open: { pending: number; dead: number } = NONE_OPEN): Webhook => ({
  id: row.id,
  url: row.url,
  types: row.types,
  description: row.description,
  active: row.active,
  disabled_reason: row.disabledReason,
  ...open,
  created_at: row.createdAt.toISOString(),
  updated_at: row.updatedAt.toISOString(),
});

async function mustFind(db: Db | Tx, id: string): Promise<WebhookRow> {
  const row = await readWebhook(db, id);
  if (row === null) throw new ApiError("not_found", `There is no webhook ${id}.`);
  return row;
}

const createWebhook = writeRoute({
  operationId: "createWebhook",
  method: "POST",
  path,
  tag,
  summary: "Have an address told of domain events from now on, signed with the secret",
  permission: "write",
  body: WebhookCreate,
  status: 201,
  response: Webhook,
  before: async ({ body, deps }) => {
    const id = randomUUID();
    await deps.secrets.write(SECRET_PATHS.webhookSecret(id), { secret: body.secret });
    return { id, from: await lastSettled(deps.db) };
  },
  abandon: ({ deps }, { id }) => deps.secrets.remove(SECRET_PATHS.webhookSecret(id)),
  write: async ({ body: { secret: _secret, ...body } }, tx, { id, from }) => {
    const [row] = await tx
      .insert(webhooks)
      .values({ id, ...body, fannedOutTo: from })
      .returning();
    if (row === undefined) throw new Error("no webhook was made");
    return { body: toWebhook(row), audit: { target: `webhooks/${id}`, details: body } };
  },
});

const listWebhooks = readRoute({
  operationId: "listWebhooks",
  method: "GET",
  path,
  tag,
  summary: "List webhooks",
  permission: "read",
  status: 200,
  response: page(Webhook),
  read: async ({ deps }) => {
    const open = await countOpen(deps.db);
    const rows = await deps.db.select().from(webhooks).orderBy(webhooks.createdAt, webhooks.id);
    return { items: rows.map((row) => toWebhook(row, open.get(row.id))), next_cursor: null };
  },
});

const getWebhook = readRoute({
  operationId: "getWebhook",
  method: "GET",
  path: `${path}/{id}`,
  tag,
  summary: "Read a webhook",
  permission: "read",
  params: WebhookParams,
  status: 200,
  response: Webhook,
  read: async ({ params, deps }) => {
    const row = await mustFind(deps.db, params.id);
    const open = (await countOpen(deps.db)).get(row.id);
    return new Versioned(toWebhook(row, open), await versionOf(deps.db, webhooks, eq(webhooks.id, row.id)));
  },
});

const patchWebhook = writeRoute({
  operationId: "updateWebhook",
  method: "PATCH",
  path: `${path}/{id}`,
  tag,
  summary: "Change a webhook, or stop and go on telling it",
  permission: "write",
  params: WebhookParams,
  body: WebhookPatch,
  status: 200,
  response: Webhook,
  write: async ({ params, body, ifMatch }, tx) => {
    await mustFind(tx, params.id);
    if (ifMatch === null)
      throw new ApiError("precondition_required", "Send the ETag of the version that you change as If-Match.");
    const [changed] = await tx
      .update(webhooks)
      .set({ ...body, ...(body.active === undefined ? {} : { disabledReason: null }), updatedAt: sql`now()` })
      .where(and(eq(webhooks.id, params.id), sql`xmin::text = ${ifMatch}`))
      .returning();
    if (changed === undefined)
      throw new ApiError("precondition_failed", "The webhook was changed since you read it. Read it again.");
    const version = await versionOf(tx, webhooks, eq(webhooks.id, params.id));
    return {
      body: new Versioned(toWebhook(changed), version),
      audit: { target: `webhooks/${params.id}`, details: body },
    };
  },
});

const rotateSecret = writeRoute({
  operationId: "rotateWebhookSecret",
  method: "POST",
  path: `${path}/{id}/rotate-secret`,
  tag,
  summary: "Sign with a new secret; for a while with the one before as well",
  permission: "write",
  params: WebhookParams,
  body: WebhookRotate,
  status: 200,
  response: Webhook,
  before: async ({ params, body, deps }) => {
    await mustFind(deps.db, params.id);
    const place = SECRET_PATHS.webhookSecret(params.id);
    const { secret: previous = body.secret } = await deps.secrets.read(place);
    // Asked again with the same secret it must not become its own predecessor.
    if (previous === body.secret) return;
    const previous_until = new Date(Date.now() + body.overlap_seconds * 1000).toISOString();
    await deps.secrets.write(place, { secret: body.secret, previous, previous_until });
  },
  write: async ({ params, body }, tx) => ({
    body: toWebhook(await mustFind(tx, params.id)),
    audit: { target: `webhooks/${params.id}`, details: { overlap_seconds: body.overlap_seconds } },
  }),
});

const deleteWebhook = writeRoute({
  operationId: "deleteWebhook",
  method: "DELETE",
  path: `${path}/{id}`,
  tag,
  summary: "Stop telling an address, and forget its deliveries and its secret",
  permission: "write",
  params: WebhookParams,
  status: 204,
  response: z.null(),
  before: ({ params, deps }) => mustFind(deps.db, params.id),
  write: async ({ params, deps }, tx) => {
    await tx.delete(webhooks).where(eq(webhooks.id, params.id));
    await deps.secrets.remove(SECRET_PATHS.webhookSecret(params.id));
    return { body: null, audit: { target: `webhooks/${params.id}` } };
  },
});

const testWebhook = writeRoute({
  operationId: "testWebhook",
  method: "POST",
  path: `${path}/{id}/test`,
  tag,
  summary: "Send the webhook an event of type webhook.tested",
  permission: "write",
  params: WebhookParams,
  status: 202,
  response: Webhook,
  write: async ({ params }, tx) => {
    const row = await mustFind(tx, params.id);
    await recordDomainEvent(tx, {
      type: "webhook.tested",
      subject: `webhooks/${params.id}`,
      data: { webhook_id: params.id },
    });
    return { body: toWebhook(row), audit: { target: `webhooks/${params.id}` } };
  },
});

const listWebhookDeliveries = readRoute({
  operationId: "listWebhookDeliveries",
  method: "GET",
  path: `${path}/{id}/deliveries`,
  tag,
  summary: "List a webhook's deliveries, newest first; state=dead are those that failed for good",
  permission: "read",
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
  path: `${path}/{id}/replay`,
  tag,
  summary: "Deliver again what failed for good, or everything after a cursor of the list of events",
  permission: "write",
  params: WebhookParams,
  body: WebhookReplay,
  status: 202,
  response: Replayed,
  write: async ({ params, body, deps }, tx) => {
    await mustFind(tx, params.id);
    const audit = { target: `webhooks/${params.id}`, details: body };
    if ("dead" in body) return { body: { replayed: await replayDeliveries(tx, params.id, "dead") }, audit };
    const position = BigInt(readCursor(body.cursor, Position)?.[0] ?? "0");
    if (!(await hasPosition(deps.db, position)))
      throw new ApiError("position_gone", "The events after this cursor were removed, as they were too old.");
    return { body: { replayed: await replayFrom(tx, params.id, position) }, audit };
  },
});

const replayDelivery = writeRoute({
  operationId: "replayWebhookDelivery",
  method: "POST",
  path: `${path}/{id}/deliveries/{delivery_id}/replay`,
  tag,
  summary: "Deliver one event again, whatever became of it",
  permission: "write",
  params: z.strictObject({ ...WebhookParams.shape, delivery_id: z.string().regex(/^\d{1,18}$/) }),
  status: 202,
  response: Replayed,
  write: async ({ params }, tx) => {
    await mustFind(tx, params.id);
    const replayed = await replayDeliveries(tx, params.id, BigInt(params.delivery_id));
    if (replayed === 0) throw new ApiError("not_found", `Webhook ${params.id} has no delivery ${params.delivery_id}.`);
    return { body: { replayed }, audit: { target: `webhooks/${params.id}`, details: params } };
  },
});

export const webhookRoutes = [
  createWebhook,
  listWebhooks,
  getWebhook,
  patchWebhook,
  rotateSecret,
  deleteWebhook,
  testWebhook,
  listWebhookDeliveries,
  replayWebhook,
  replayDelivery,
];
