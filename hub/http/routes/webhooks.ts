import { randomUUID } from "node:crypto";
import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { page } from "../../../shared/api/onboardings.ts";
import { Webhook, WebhookCreate, WebhookPatch, WebhookRotate } from "../../../shared/api/webhooks.ts";
import { Secret } from "../../../shared/secret.ts";
import { recordDomainEvent } from "../../db/queries/domain-events.ts";
import { lastSettled } from "../../db/queries/domain-events-list.ts";
import {
  changeWebhook,
  countOpen,
  deleteWebhook as deleteRow,
  insertWebhook,
  listWebhooksAfter,
} from "../../db/queries/webhooks.ts";
import { addressFault } from "../../events/webhook-address.ts";
import { rotated, rotateKept } from "../../events/webhook-secret.ts";
import { SECRET_PATHS } from "../../secrets/port.ts";
import { PageQuery, pageOf, readCursor } from "../page.ts";
import { readRoute, Versioned, writeRoute } from "../route.ts";
import { changedMeanwhile, mustMatch } from "./rows.ts";
import { mustFind, mustLock, originOf, toWebhook, WEBHOOKS_PATH, WEBHOOKS_TAG, WebhookParams } from "./webhook-rows.ts";

/** Returns the body of a webhook request for the audit, without the secret parts of the webhook's URL. */
const audited = <B extends { url?: string | undefined }>(body: B): B =>
  body.url === undefined ? body : { ...body, url: originOf(body.url) };

function refuseAddress(url: string): void {
  const fault = addressFault(new URL(url));
  if (fault === null) return;
  throw new ApiError("validation_failed", `The webhook's URL ${fault}.`, {
    errors: [{ pointer: "/url", message: fault }],
  });
}

const createWebhook = writeRoute({
  operationId: "createWebhook",
  method: "POST",
  path: WEBHOOKS_PATH,
  tag: WEBHOOKS_TAG,
  summary: "Create a webhook: its URL gets all later domain events, signed with the secret",
  permission: "write",
  right: "manage_hub",
  place: "hub",
  body: WebhookCreate,
  status: 201,
  response: Webhook,
  before: async ({ body, deps }) => {
    refuseAddress(body.url);
    const id = randomUUID();
    await deps.secrets.write(SECRET_PATHS.webhookSecret(id), { secret: body.secret });
    return { id, from: await lastSettled(deps.db) };
  },
  abandon: ({ deps }, { id }) => deps.secrets.remove(SECRET_PATHS.webhookSecret(id)),
  write: async ({ actor, body: { secret: _secret, ...body } }, tx, { id, from }) => {
    const row = await insertWebhook(tx, { id, ...body, fannedOutTo: from });
    return { body: toWebhook(row, actor), audit: { target: `webhooks/${id}`, details: audited(body) } };
  },
});

/** The cursor of the list of webhooks: the creation time in microseconds and the id of the previous page's last webhook. */
const After = z.tuple([z.string().regex(/^\d{1,18}$/), z.uuid()]);

const listWebhooks = readRoute({
  operationId: "listWebhooks",
  method: "GET",
  path: WEBHOOKS_PATH,
  tag: WEBHOOKS_TAG,
  summary: "List webhooks in the order of their creation",
  permission: "read",
  right: "read_fleet",
  place: "hub",
  query: PageQuery,
  status: 200,
  response: page(Webhook),
  read: async ({ actor, query, deps }) => {
    const after = readCursor(query.cursor, After);
    const rows = await listWebhooksAfter(deps.db, after, query.limit + 1);
    const open = await countOpen(
      deps.db,
      rows.map(({ webhook }) => webhook.id),
    );
    return pageOf(
      rows,
      query.limit,
      ({ webhook, madeAt }) => [madeAt, webhook.id],
      ({ webhook }) => toWebhook(webhook, actor, open.get(webhook.id)),
    );
  },
});

const getWebhook = readRoute({
  operationId: "getWebhook",
  method: "GET",
  path: `${WEBHOOKS_PATH}/{id}`,
  tag: WEBHOOKS_TAG,
  summary: "Read a webhook",
  permission: "read",
  right: "read_fleet",
  place: "hub",
  params: WebhookParams,
  status: 200,
  response: Webhook,
  read: async ({ actor, params, deps }) => {
    const row = await mustFind(deps.db, params.id);
    const open = (await countOpen(deps.db, [row.id])).get(row.id);
    return new Versioned(toWebhook(row, actor, open), String(row.version));
  },
});

const patchWebhook = writeRoute({
  operationId: "updateWebhook",
  method: "PATCH",
  path: `${WEBHOOKS_PATH}/{id}`,
  tag: WEBHOOKS_TAG,
  summary: "Change, stop or restart a webhook",
  permission: "write",
  right: "manage_hub",
  place: "hub",
  params: WebhookParams,
  body: WebhookPatch,
  status: 200,
  response: Webhook,
  write: async ({ actor, params, body, ifMatch }, tx) => {
    if (body.url !== undefined) refuseAddress(body.url);
    const row = await mustLock(tx, params.id);
    if (mustMatch(ifMatch) !== String(row.version)) throw changedMeanwhile("webhook");
    const changed = await changeWebhook(tx, row, body);
    const open = (await countOpen(tx, [row.id])).get(row.id);
    return {
      body: new Versioned(toWebhook(changed, actor, open), String(changed.version)),
      audit: { target: `webhooks/${params.id}`, details: audited(body) },
    };
  },
});

const rotateSecret = writeRoute({
  operationId: "rotateWebhookSecret",
  method: "POST",
  path: `${WEBHOOKS_PATH}/{id}/rotate-secret`,
  tag: WEBHOOKS_TAG,
  summary: "Sign with a new secret, and for a while with the previous one too",
  permission: "write",
  right: "manage_hub",
  place: "hub",
  params: WebhookParams,
  body: WebhookRotate,
  status: 200,
  response: Webhook,
  before: async ({ params, body, deps }) => {
    await mustFind(deps.db, params.id);
    await rotateKept(deps.secrets, SECRET_PATHS.webhookSecret(params.id), (kept) =>
      rotated(kept, new Secret(body.secret), body.overlap_seconds, new Date()),
    );
  },
  write: async ({ actor, params, body }, tx) => ({
    body: toWebhook(await mustFind(tx, params.id), actor),
    audit: { target: `webhooks/${params.id}`, details: { overlap_seconds: body.overlap_seconds } },
  }),
});

const deleteWebhook = writeRoute({
  operationId: "deleteWebhook",
  method: "DELETE",
  path: `${WEBHOOKS_PATH}/{id}`,
  tag: WEBHOOKS_TAG,
  summary: "Delete a webhook with its deliveries and its secret",
  permission: "write",
  right: "manage_hub",
  place: "hub",
  params: WebhookParams,
  status: 204,
  response: z.null(),
  before: ({ params, deps }) => mustFind(deps.db, params.id),
  write: async ({ params }, tx) => {
    await deleteRow(tx, params.id);
    return { body: null, audit: { target: `webhooks/${params.id}` } };
  },
  after: ({ params, deps }) => deps.secrets.remove(SECRET_PATHS.webhookSecret(params.id)),
});

const testWebhook = writeRoute({
  operationId: "testWebhook",
  method: "POST",
  path: `${WEBHOOKS_PATH}/{id}/test`,
  tag: WEBHOOKS_TAG,
  summary: "Send the webhook an event of type webhook.tested",
  permission: "write",
  right: "manage_hub",
  place: "hub",
  params: WebhookParams,
  status: 202,
  response: Webhook,
  write: async ({ actor, params }, tx) => {
    const row = await mustLock(tx, params.id);
    if (!row.active)
      throw new ApiError(
        "conflict",
        `Webhook ${params.id} is stopped, so a test would not be sent. Set active to true, then test it.`,
      );
    await recordDomainEvent(tx, {
      type: "webhook.tested",
      subject: `webhooks/${params.id}`,
      data: { webhook_id: params.id },
    });
    return { body: toWebhook(row, actor), audit: { target: `webhooks/${params.id}` } };
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
];
