import { createHash } from "node:crypto";
import { type Cookies, cookieValue, hasCookie, isSessionId } from "../sign-in/session-cookie.ts";

/** What a request proves its sender with. The hub counts requests by the hash of the token, before it knows whether the token is valid. */
export interface Credential {
  /**
   * The kinds of credentials: `token` is an API token, `access_token` a JWT of the identity provider, and `session` the cookie of a session in the
   * console.
   */
  readonly kind: "token" | "access_token" | "session";
  readonly token: string;
  readonly tokenSha256: string;
}

/** A JWT has three parts; the first one is a JSON object in base64url, which begins with `eyJ`. No API token contains a dot. */
const JWT = /^eyJ[\w-]*\.[\w-]*\.[\w-]*$/;
const MAX_API_TOKEN = 512;

export const tokenHash = (token: string): string => createHash("sha256").update(token).digest("hex");

/** The headers of a request that may hold a credential. */
export interface CredentialHeaders {
  readonly authorization: string | undefined;
  readonly cookie: string | undefined;
}

export const hasSessionCookie = (headers: CredentialHeaders, cookies: Cookies): boolean =>
  hasCookie(headers.cookie ?? null, cookies.session);

/** A request with both a session cookie and the header Authorization was refused before `credentialOf` is called. */
export function credentialOf({ authorization, cookie }: CredentialHeaders, cookies: Cookies): Credential | null {
  if (authorization === undefined) {
    const id = cookieValue(cookie ?? null, cookies.session);
    return id !== null && isSessionId(id) ? { kind: "session", token: id, tokenSha256: tokenHash(id) } : null;
  }
  const token = /^Bearer +([\x21-\x7e]{1,12288})$/i.exec(authorization)?.[1];
  if (token === undefined) return null;
  const kind = JWT.test(token) ? "access_token" : "token";
  if (kind === "token" && token.length > MAX_API_TOKEN) return null;
  return { kind, token, tokenSha256: tokenHash(token) };
}
