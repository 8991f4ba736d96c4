import { z } from "zod";
import { EventPattern } from "../events.ts";
import { Timestamp } from "./values.ts";

const url = z
  .url({ protocol: /^https?$/ })
  .max(500)
  .refine(
    (text) => !URL.canParse(text) || (new URL(text).username === "" && new URL(text).password === ""),
    "must hold no user name or password; deliveries are signed instead",
  );
const types = z.array(EventPattern).min(1).max(20);
const description = z.string().max(200);
const WHAT_SECRET = "must be whsec_ and 24 to 64 random bytes in base64, e.g. of openssl rand -base64 32";
/**
 * A webhook's secret has the format of the specification Standard Webhooks, for example `whsec_$(openssl rand -base64 32)`. The hub never shows a
 * webhook's secret.
 */
const secret = z
  .string()
  .regex(/^whsec_[A-Za-z0-9+/]+={0,2}$/, WHAT_SECRET)
  .refine((text) => {
    const base64 = text.slice("whsec_".length);
    const bytes = (base64.length / 4) * 3 - (base64.length - base64.replace(/=+$/, "").length);
    return base64.length % 4 === 0 && bytes >= 24 && bytes <= 64;
  }, WHAT_SECRET);

export const WebhookCreate = z.strictObject({
  url,
  types: types.default(["*"]),
  description: description.default(""),
  secret,
});
export type WebhookCreate = z.output<typeof WebhookCreate>;

export const WebhookPatch = z.strictObject({
  url: url.optional(),
  types: types.optional(),
  description: description.optional(),
  active: z.boolean().optional(),
});

export const WebhookRotate = z.strictObject({
  secret,
  /** For how long after a change of a webhook's secret the hub signs deliveries with the old secret too. */
  overlap_seconds: z.int().min(0).max(604_800).default(86_400),
});

export const Webhook = z.strictObject({
  id: z.uuid(),
  /** An operator with the role `viewer` sees the webhook's URL without path and query, because these often contain a secret of the receiver. */
  url: z.string(),
  types: z.array(z.string()),
  description: z.string(),
  active: z.boolean(),
  /**
   * Why the hub stopped sending events to the webhook by itself. `disabled_reason` is null while the hub sends events to the webhook, and if a person
   * stopped the webhook.
   */
  disabled_reason: z.string().nullable(),
  pending: z.int(),
  dead: z.int(),
  created_at: Timestamp,
  updated_at: Timestamp,
});
export type Webhook = z.output<typeof Webhook>;

export const DELIVERY_STATES = ["pending", "delivered", "dead"] as const;

export const WebhookDelivery = z.strictObject({
  id: z.string(),
  event_id: z.string().nullable(),
  event_type: z.string().nullable(),
  event_subject: z.string().nullable(),
  state: z.enum(DELIVERY_STATES),
  attempts: z.int(),
  next_attempt_at: Timestamp.nullable(),
  last_status: z.int().nullable(),
  last_error: z.string().nullable(),
  created_at: Timestamp,
  ended_at: Timestamp.nullable(),
});
export type WebhookDelivery = z.output<typeof WebhookDelivery>;

export const WebhookReplay = z.union([
  z.strictObject({ dead: z.literal(true) }),
  /** `cursor` is a position in the list of events; the hub sends all events after it to the webhook, including those already delivered. */
  z.strictObject({ cursor: z.string().min(1).max(512) }),
]);
