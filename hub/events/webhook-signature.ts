import { createHmac, timingSafeEqual } from "node:crypto";
import type { Secret } from "../../shared/secret.ts";

/** Returns the signature of a text with one webhook secret, as Standard Webhooks defines it. */
function macOf(secret: Secret, text: string): Buffer {
  const key = Buffer.from(secret.reveal().replace(/^whsec_/, ""), "base64");
  return createHmac("sha256", key).update(text).digest();
}

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
  return secrets.map((secret) => `v1,${macOf(secret, signed).toString("base64")}`).join(" ");
}

/** The largest number of signatures that the hub compares of one request. */
const MOST_SIGNATURES = 8;

/**
 * True if one of the signatures in the header `webhook-signature` was made from the message with one of the given secrets. The time that `isSigned`
 * takes to compare signatures reveals nothing about the secrets.
 */
export function isSigned(
  secrets: readonly Secret[],
  message: { readonly id: string; readonly sentAt: string; readonly body: string },
  header: string,
): boolean {
  const signed = `${message.id}.${message.sentAt}.${message.body}`;
  const given = header
    .split(" ", MOST_SIGNATURES)
    .flatMap((one) => (one.startsWith("v1,") ? [Buffer.from(one.slice("v1,".length), "base64")] : []));
  return secrets.some((secret) => {
    const mac = macOf(secret, signed);
    return given.some((one) => one.length === mac.length && timingSafeEqual(one, mac));
  });
}
