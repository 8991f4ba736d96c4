import { z } from "zod";
import { isSafeForSecrets } from "../http/loopback.ts";
import type { SignInSettings } from "../sign-in/open-sign-in.ts";
import { SIGNING_ALGORITHMS, type SigningAlgorithm } from "../sign-in/settings.ts";

const isOrigin = (text: string): boolean => {
  const url = URL.parse(text);
  return url !== null && url.href === `${url.origin}/`;
};
/** A URL through which tokens and authorization codes pass, so it must use TLS except on loopback. */
const safeUrl = z
  .url({ protocol: /^https?$/ })
  .refine(isSafeForSecrets, "must begin with https://; http:// is allowed on loopback only");
const isAlgorithm = (text: string): text is SigningAlgorithm => SIGNING_ALGORITHMS.some((one) => one === text);
const words = z.string().regex(/^[\x21-\x7e]+( [\x21-\x7e]+)*$/, "must be words, each separated by one space");

export const signInEnv = {
  /**
   * The origin at which browsers reach the hub. The hub compares the origin of a page's requests with MUSTER_PUBLIC_URL, and the provider sends
   * browsers back to this URL.
   */
  MUSTER_PUBLIC_URL: safeUrl.refine(isOrigin, "must be scheme, host and port alone").optional(),
  /** The issuer of the OpenID Connect provider, exactly as the provider's own description writes it. */
  MUSTER_OIDC_ISSUER: safeUrl.optional(),
  MUSTER_OIDC_CLIENT_ID: z.string().min(1).optional(),
  /**
   * The file with the secret of the hub's OAuth client. Without a file with a client secret, the hub is a public OAuth client, which proves itself by
   * PKCE alone.
   */
  MUSTER_OIDC_CLIENT_SECRET_FILE: z.string().min(1).optional(),
  /** The public OAuth client of the command line, for the device flow. */
  MUSTER_OIDC_CLI_CLIENT_ID: z.string().min(1).optional(),
  MUSTER_OIDC_SCOPES: words.default("openid profile email"),
  /** With the scope `offline_access` the command line gets a refresh token, so a person need not log in again every hour. */
  MUSTER_OIDC_CLI_SCOPES: words.default("openid profile email offline_access"),
  /** One or more audiences of access tokens, separated by spaces. Without an audience the hub accepts no access token. */
  MUSTER_OIDC_AUDIENCE: words.optional(),
  MUSTER_OIDC_RESOURCE: z.url().optional(),
  MUSTER_OIDC_ALGORITHMS: words
    .refine((text) => text.split(" ").every(isAlgorithm), `must be some of ${SIGNING_ALGORITHMS.join(" ")}`)
    .default("RS256 PS256 ES256 EdDSA"),
  MUSTER_OIDC_TOKEN_TYPE: z.enum(["at+jwt", "any"]).default("at+jwt"),
  /** The JSON file with the rules that give roles to groups. */
  MUSTER_OIDC_ROLES_FILE: z.string().min(1).optional(),
};
export type SignInEnv = {
  readonly MUSTER_PUBLIC_URL?: string | undefined;
  readonly MUSTER_OIDC_ISSUER?: string | undefined;
  readonly MUSTER_OIDC_CLIENT_ID?: string | undefined;
  readonly MUSTER_OIDC_CLIENT_SECRET_FILE?: string | undefined;
  readonly MUSTER_OIDC_CLI_CLIENT_ID?: string | undefined;
  readonly MUSTER_OIDC_SCOPES: string;
  readonly MUSTER_OIDC_CLI_SCOPES: string;
  readonly MUSTER_OIDC_AUDIENCE?: string | undefined;
  readonly MUSTER_OIDC_RESOURCE?: string | undefined;
  readonly MUSTER_OIDC_ALGORITHMS: string;
  readonly MUSTER_OIDC_TOKEN_TYPE: "at+jwt" | "any";
  readonly MUSTER_OIDC_ROLES_FILE?: string | undefined;
};

/** Returns the settings of the sign-in, or the fault of the settings. */
export function signInSettings(e: SignInEnv, byTls: boolean): SignInSettings | { readonly fault: string } {
  const publicUrl = e.MUSTER_PUBLIC_URL === undefined ? null : new URL(e.MUSTER_PUBLIC_URL).origin;
  const secure = byTls || publicUrl?.startsWith("https:") === true;
  if (e.MUSTER_OIDC_ISSUER === undefined) return { publicUrl, secure, oidc: null };
  const { MUSTER_OIDC_CLIENT_ID: clientId, MUSTER_OIDC_ROLES_FILE: rolesFile } = e;
  if (clientId === undefined || rolesFile === undefined || publicUrl === null)
    return {
      fault: "MUSTER_OIDC_ISSUER needs MUSTER_OIDC_CLIENT_ID, MUSTER_OIDC_ROLES_FILE and MUSTER_PUBLIC_URL too.",
    };
  if (byTls && !publicUrl.startsWith("https:"))
    return { fault: "MUSTER_PUBLIC_URL must begin with https://, because the admin listener uses TLS." };
  const oidc = {
    issuer: e.MUSTER_OIDC_ISSUER,
    clearText: new URL(e.MUSTER_OIDC_ISSUER).protocol === "http:",
    clientId,
    clientSecretFile: e.MUSTER_OIDC_CLIENT_SECRET_FILE ?? null,
    cliClientId: e.MUSTER_OIDC_CLI_CLIENT_ID ?? clientId,
    scopes: e.MUSTER_OIDC_SCOPES,
    cliScopes: e.MUSTER_OIDC_CLI_SCOPES,
    audiences: e.MUSTER_OIDC_AUDIENCE?.split(" ") ?? [],
    resource: e.MUSTER_OIDC_RESOURCE ?? null,
    algorithms: e.MUSTER_OIDC_ALGORITHMS.split(" ").filter(isAlgorithm),
    tokenType: e.MUSTER_OIDC_TOKEN_TYPE,
    rolesFile,
    publicUrl,
  };
  return { publicUrl, secure, oidc };
}
