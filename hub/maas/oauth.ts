import { randomBytes } from "node:crypto";
import { Secret } from "../../shared/secret.ts";

export interface ApiKey {
  readonly consumerKey: string;
  readonly tokenKey: string;
  readonly tokenSecret: Secret;
}

export function parseApiKey(key: Secret): ApiKey | null {
  const [consumerKey, tokenKey, tokenSecret, ...rest] = key.reveal().trim().split(":");
  if (!consumerKey || !tokenKey || !tokenSecret || rest.length > 0) return null;
  return { consumerKey, tokenKey, tokenSecret: new Secret(tokenSecret) };
}

/**
 * Makes the OAuth 1.0 PLAINTEXT header with which the hub authenticates to MAAS (maas 1.2). MAAS stores each nonce, so an OAuth header is valid for
 * one request. The consumer's secret is empty, so the OAuth signature is `&<token secret>`, percent-encoded once as a header value.
 */
export function authorization(key: ApiKey, now: Date, nonce: string = randomBytes(16).toString("hex")): Secret {
  const fields = {
    oauth_version: "1.0",
    oauth_signature_method: "PLAINTEXT",
    oauth_consumer_key: key.consumerKey,
    oauth_token: key.tokenKey,
    oauth_signature: `&${encodeURIComponent(key.tokenSecret.reveal())}`,
    oauth_timestamp: String(Math.floor(now.getTime() / 1000)),
    oauth_nonce: nonce,
  };
  const list = Object.entries(fields).map(([name, value]) => `${name}="${encodeURIComponent(value)}"`);
  return new Secret(`OAuth ${list.join(", ")}`);
}
