import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { hasRight } from "../../../shared/api/rights.ts";
import type { Webhook } from "../../../shared/api/webhooks.ts";
import { lockWebhook, readWebhook } from "../../db/queries/webhooks.ts";
import type { Webhook as WebhookRow } from "../../db/schema/index.ts";
import type { Db, Tx } from "../../db/tx.ts";
import type { Actor } from "../../people/actor.ts";

export const WebhookParams = z.strictObject({ id: z.uuid() });
export const WEBHOOKS_PATH = "/api/v1/admin/webhooks";
export const WEBHOOKS_TAG = "webhooks";

const NONE_OPEN = { pending: 0, dead: 0 };
export const toWebhook = (
  row: WebhookRow,
  { role }: Actor,
  open: { pending: number; dead: number } = NONE_OPEN,
): Webhook => ({
  id: row.id,
  url: hasRight(role, "manage_hub") ? row.url : originOf(row.url),
  types: row.types,
  description: row.description,
  active: row.active,
  disabled_reason: row.disabledReason,
  ...open,
  created_at: row.createdAt.toISOString(),
  updated_at: row.updatedAt.toISOString(),
});

/** The path and query of a webhook's URL often contain a key, which neither the audit nor a user with only read access may see. */
export const originOf = (url: string): string => new URL(url).origin;

function found(row: WebhookRow | null, id: string): WebhookRow {
  if (row === null) throw new ApiError("not_found", `There is no webhook ${id}.`);
  return row;
}
export const mustFind = async (db: Db | Tx, id: string): Promise<WebhookRow> => found(await readWebhook(db, id), id);
export const mustLock = async (tx: Tx, id: string): Promise<WebhookRow> => found(await lockWebhook(tx, id), id);
