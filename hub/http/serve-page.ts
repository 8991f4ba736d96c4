import { randomBytes } from "node:crypto";
import type { Context } from "hono";

/** A page of the hub may run only the script inside the page; the nonce in the content security policy makes the browser refuse other scripts. */
export function servePage(
  c: Context,
  page: (nonce: string) => string,
  status: 200 | 400 | 403 | 503 = 200,
): Response | Promise<Response> {
  const nonce = randomBytes(16).toString("base64");
  c.header(
    "content-security-policy",
    `default-src 'none'; style-src 'nonce-${nonce}'; script-src 'nonce-${nonce}'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  );
  c.header("x-content-type-options", "nosniff");
  c.header("referrer-policy", "no-referrer");
  return c.html(page(nonce), status);
}
