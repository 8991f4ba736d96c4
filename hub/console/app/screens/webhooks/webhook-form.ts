import type { Body } from "../../api/schema.ts";
import { partsOf, webAddress } from "../../forms/checks.ts";
import type { Errors } from "../../forms/form-errors.ts";

export interface WebhookValues {
  readonly url: string;
  readonly types: string;
  readonly description: string;
  readonly secret: string;
}

const SECRET = /^whsec_[A-Za-z0-9+/]+={0,2}$/;

function typesError(text: string): string | undefined {
  const types = partsOf(text);
  if (types.length === 0) return "is missing; * stands for all types";
  return types.length > 20 ? "has more than 20 types" : undefined;
}

export const checkWebhook = (values: WebhookValues): Errors<WebhookValues> => ({
  url: webAddress(values.url),
  types: typesError(values.types),
  description: values.description.length > 200 ? "is longer than 200 characters" : undefined,
  secret: SECRET.test(values.secret.trim()) ? undefined : "is no secret: whsec_ and then base64",
});

export const webhookBody = (values: WebhookValues): Body<"createWebhook"> => ({
  url: values.url.trim(),
  types: partsOf(values.types),
  description: values.description.trim(),
  secret: values.secret.trim(),
});
