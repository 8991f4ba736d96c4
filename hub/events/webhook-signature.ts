import { createHmac } from "node:crypto";
import type { Secret } from "../../shared/secret.ts";

/**
 * Returns the header `webhook-signature` of Standard Webhooks, with one `v1,<base64>` for each secret. With one signature for each secret, a receiver
 * needs only one of a webhook's two secrets during a rotation. `sentAt` is the time of sending in whole seconds since 1970, like the value of the
 * header `webhook-timestamp`.
 */
export function signatureOf(
  secrets: readonly Secret[],
  message: { readonly id: string; readonly sentAt: number; readonly body: string },
): string {
  const signed = `${message.id}.${message.sentAt}.${message.body}`;
  return secrets
    .map((secret) => {
      const key = Buffer.from(secret.reveal().replace(/^whsec_/, ""), "base64");
      return `v1,${createHmac("sha256", key).update(signed).digest("base64")}`;
    })
    .join(" ");
}
