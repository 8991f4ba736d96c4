import { readFile } from "node:fs/promises";
import { decodeProtectedHeader } from "jose";
import * as client from "openid-client";
import type { Claims } from "./role-rules.ts";
import type { OidcSettings } from "./settings.ts";
import { SignInError } from "./sign-in-error.ts";

/** The longest time that one request to the sign-in provider may take. */
const DEADLINE_SECONDS = 10;

/**
 * The values of a begun sign-in that the browser must still have when it comes back from the provider. Only the browser's cookie holds the values of
 * a begun sign-in.
 */
export interface Begun {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** The person of a completed sign-in. */
export interface Person {
  readonly subject: string;
  readonly claims: Claims;
  readonly refreshToken: string | null;
}

/** The hub as a client of the provider, for sign-ins on the page: authorization code with PKCE. */
export class Provider {
  readonly #settings: OidcSettings;
  constructor(settings: OidcSettings) {
    this.#settings = settings;
  }

  get redirectUri(): string {
    return `${this.#settings.publicUrl}/sign-in/callback`;
  }

  async begin(): Promise<{ readonly location: string; readonly begun: Begun }> {
    const config = await this.#connect();
    const begun = {
      state: client.randomState(),
      nonce: client.randomNonce(),
      verifier: client.randomPKCECodeVerifier(),
    };
    const location = client.buildAuthorizationUrl(config, {
      redirect_uri: this.redirectUri,
      scope: this.#settings.scopes,
      state: begun.state,
      nonce: begun.nonce,
      code_challenge: await client.calculatePKCECodeChallenge(begun.verifier),
      code_challenge_method: "S256",
      // A provider gives a refresh token for the scope `offline_access` only if it asks the person for consent (OpenID Connect Core 11).
      ...(this.#settings.scopes.split(" ").includes("offline_access") ? { prompt: "consent" } : {}),
    });
    return { location: location.href, begun };
  }

  /**
   * Exchanges the provider's authorization code for tokens. The argument `query` is the query of the address to which the provider sent the browser
   * back.
   */
  async finish(query: URLSearchParams, begun: Begun): Promise<Person> {
    const config = await this.#connect();
    const callback = new URL(`${this.redirectUri}?${query}`);
    return answered(async () => {
      const tokens = await client.authorizationCodeGrant(config, callback, {
        pkceCodeVerifier: begun.verifier,
        expectedState: begun.state,
        expectedNonce: begun.nonce,
        idTokenExpected: true,
      });
      const claims = tokens.claims();
      if (claims === undefined) throw new SignInError("invalid", "The provider sent no ID token.");
      return this.#personOf(config, tokens, claims);
    });
  }

  /** Asks the sign-in provider for the present claims of a person. `renew` throws `refused` if the provider has ended the person's access. */
  async renew(refreshToken: string, person: { readonly subject: string; readonly claims: Claims }): Promise<Person> {
    const config = await this.#connect();
    return answered(async () => {
      const tokens = await client.refreshTokenGrant(config, refreshToken);
      const claims = tokens.claims() ?? { ...person.claims, sub: person.subject };
      if (claims.sub !== person.subject)
        throw new SignInError("invalid", "The provider renewed the token of another person.");
      const renewed = await this.#personOf(config, tokens, claims);
      return { ...renewed, refreshToken: renewed.refreshToken ?? refreshToken };
    });
  }

  /** Some providers put a person's groups only into the answer of the userinfo endpoint. */
  async #personOf(
    config: client.Configuration,
    tokens: { readonly access_token: string; readonly id_token?: string; readonly refresh_token?: string },
    claims: Claims & { readonly sub: string },
  ): Promise<Person> {
    this.#checkAlgorithm(tokens.id_token);
    const { sub } = claims;
    const more =
      config.serverMetadata().userinfo_endpoint === undefined
        ? {}
        : await client.fetchUserInfo(config, tokens.access_token, sub);
    const all: Claims = { ...claims, ...more };
    return { subject: sub, claims: all, refreshToken: tokens.refresh_token ?? null };
  }

  /** Some tokens name an algorithm that the provider supports and the hub's settings do not. */
  #checkAlgorithm(idToken: string | undefined): void {
    if (idToken === undefined) return;
    const { alg } = decodeProtectedHeader(idToken);
    if (this.#settings.algorithms.some((one) => one === alg)) return;
    throw new SignInError(
      "invalid",
      "The provider signs ID tokens by an algorithm that MUSTER_OIDC_ALGORITHMS does not list.",
    );
  }

  /**
   * Reads the provider's description. Each call reads the provider's description and later its keys anew, because sign-ins are rare and the provider
   * may have changed its keys a moment ago.
   */
  async #connect(): Promise<client.Configuration> {
    const { issuer, clientId, clientSecretFile, clearText } = this.#settings;
    const secret = clientSecretFile === null ? null : await secretOf(clientSecretFile);
    const authentication = secret === null ? client.None() : client.ClientSecretBasic(secret);
    const execute = [client.enableNonRepudiationChecks, ...(clearText ? [client.allowInsecureRequests] : [])];
    const options = { timeout: DEADLINE_SECONDS, execute };
    return answered(() => client.discovery(new URL(issuer), clientId, {}, authentication, options));
  }
}

async function secretOf(file: string): Promise<string> {
  const text = await readFile(file, "utf8").catch((cause: unknown) => {
    throw new SignInError("provider_away", "The hub cannot read the file of MUSTER_OIDC_CLIENT_SECRET_FILE.", {
      cause,
    });
  });
  return text.trim();
}

/** Calls the sign-in provider, and turns each error into a reason that a person understands. */
async function answered<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    throw error instanceof SignInError ? error : failureOf(error);
  }
}

/** OAuth's error codes that mean a fault of the provider itself (RFC 6749). */
const OF_PROVIDER: readonly string[] = ["server_error", "temporarily_unavailable"];
/** The error codes of openid-client that mean that something other than a working provider answered. */
const NO_PROVIDER: readonly string[] = [
  "OAUTH_TIMEOUT",
  "OAUTH_ABORT",
  "OAUTH_RESPONSE_IS_NOT_CONFORM",
  "OAUTH_RESPONSE_IS_NOT_JSON",
  "OAUTH_PARSE_ERROR",
];

function failureOf(error: unknown): SignInError {
  if (error instanceof client.ResponseBodyError || error instanceof client.AuthorizationResponseError) {
    const code = /^[\w.-]{1,64}$/.test(error.error) ? error.error : "unknown";
    if (OF_PROVIDER.includes(code)) return away(code, error);
    if (code === "invalid_grant")
      return new SignInError("stale", "The provider no longer accepts this sign-in. Begin again.", { cause: error });
    return new SignInError("refused", `The provider refused the sign-in (${code}).`, { cause: error });
  }
  const code = codeOf(error);
  // A failed connection is a TypeError without a code of its own; its cause has the code.
  const cut = error instanceof TypeError && !("code" in error);
  if (cut || NO_PROVIDER.includes(code)) return away(code, error);
  return new SignInError(
    "invalid",
    `The provider's answer is not acceptable (${code}). The hub's log has the reason. Check the settings of the provider and of the hub.`,
    { cause: error },
  );
}

const away = (code: string, cause: unknown): SignInError =>
  new SignInError(
    "provider_away",
    `The provider of the sign-in does not answer as it should (${code}). Sessions that exist go on. Try again, or sign in with a token.`,
    { cause },
  );

/** Returns the code of an error, or of the error that caused it, for example `ECONNREFUSED`. */
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  if ("code" in error && typeof error.code === "string") return error.code;
  return error.cause instanceof Error ? codeOf(error.cause) : error.name;
}
