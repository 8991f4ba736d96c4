import {
  createLocalJWKSet,
  createRemoteJWKSet,
  type ExportedJWKSCache,
  errors,
  type JWTVerifyGetKey,
  jwksCache,
  jwtVerify,
} from "jose";
import { z } from "zod";
import type { Claims } from "./role-rules.ts";
import type { OidcSettings } from "./settings.ts";

/** The reasons why the hub refuses an access token. No reason for the refusal of an access token contains a part of the token. */
export const ACCESS_TOKEN_FAULTS = {
  malformed: "it is not a signed JWT",
  algorithm: "it is signed by an algorithm that MUSTER_OIDC_ALGORITHMS does not list, or not signed",
  type: "its header has another typ than MUSTER_OIDC_TOKEN_TYPE",
  signature: "no key of the provider has signed it",
  issuer: "another issuer than MUSTER_OIDC_ISSUER has made it",
  audience: "it is for none of the audiences of MUSTER_OIDC_AUDIENCE",
  expired: "it has expired",
  not_yet_valid: "it is not valid yet; compare the clocks of hub and provider",
  claims: "it lacks a claim that an access token must have (sub, exp)",
  no_audience: "the hub accepts no access tokens, because MUSTER_OIDC_AUDIENCE is not set",
} as const;
export type AccessTokenFault = keyof typeof ACCESS_TOKEN_FAULTS;

export type Verified =
  | { readonly kind: "valid"; readonly claims: Claims & { readonly sub: string; readonly exp: number } }
  | { readonly kind: "refused"; readonly fault: AccessTokenFault }
  /** The result of a token check if the sign-in provider does not answer and the hub has no key of the provider for the check. */
  | { readonly kind: "provider_away" };

const DEADLINE_MS = 5_000;
/** The shortest time between two attempts to read the provider's description, so that a flood of tokens does not become a flood of requests. */
const DISCOVERY_PAUSE_MS = 2_000;
/**
 * `keysPauseMs` is the shortest time between two readings of the provider's keys for tokens with an unknown key. The hub reads provider keys that are
 * older than `keysMaxAgeMs` again before their next use.
 */
const PATIENCE = { keysPauseMs: 5_000, keysMaxAgeMs: 600_000 };
/** The longest time that the hub uses the sign-in provider's keys after it last read them, if the provider does not answer. */
const KEYS_LAST_MS = 24 * 3_600_000;
/** The seconds by which the clocks of hub and provider may differ. */
const CLOCK_TOLERANCE = 30;
const MAX_DESCRIPTION_BYTES = 256 * 1024;

const Description = z.looseObject({ issuer: z.string(), jwks_uri: z.url() });

interface Keys {
  readonly remote: JWTVerifyGetKey;
  /** The provider's keys at their last reading, and the time of that reading in milliseconds since 1970. The library `jose` writes both. */
  readonly last: Partial<ExportedJWKSCache>;
}

/** Checks access tokens in the form of JWTs (RFC 9068) by the provider's keys. */
export class AccessTokens {
  readonly #settings: OidcSettings;
  readonly #now: () => number;
  readonly #patience: typeof PATIENCE;
  #keys: Keys | null = null;
  #opening: Promise<Keys | null> | null = null;
  #failedAt = Number.NEGATIVE_INFINITY;

  constructor(settings: OidcSettings, now: () => number = Date.now, patience: Partial<typeof PATIENCE> = {}) {
    this.#settings = settings;
    this.#now = now;
    this.#patience = { ...PATIENCE, ...patience };
  }

  async verify(token: string): Promise<Verified> {
    if (this.#settings.audiences.length === 0) return { kind: "refused", fault: "no_audience" };
    const keys = this.#keys ?? (await this.#open());
    if (keys === null) return { kind: "provider_away" };
    const first = await this.#check(token, keys.remote);
    const { jwks, uat } = keys.last;
    if (first.kind !== "provider_away" || jwks === undefined || uat === undefined) return first;
    if (this.#now() - uat > KEYS_LAST_MS) return first;
    const second = await this.#check(token, createLocalJWKSet(jwks));
    // While the OIDC provider is not reachable, the hub cannot know whether the unknown signing key of an access token is a new key of the provider.
    return second.kind === "refused" && second.fault === "signature" ? first : second;
  }

  async #check(token: string, keys: JWTVerifyGetKey): Promise<Verified> {
    const { issuer, audiences, algorithms, tokenType } = this.#settings;
    try {
      const { payload } = await jwtVerify(token, keys, {
        issuer,
        audience: [...audiences],
        algorithms: [...algorithms],
        clockTolerance: CLOCK_TOLERANCE,
        requiredClaims: ["sub", "exp"],
        ...(tokenType === "any" ? {} : { typ: tokenType }),
      });
      return { kind: "valid", claims: { ...payload, sub: payload.sub ?? "", exp: payload.exp ?? 0 } };
    } catch (error) {
      return verdictOf(error);
    }
  }

  /** Reads the sign-in provider's description once for all requests that wait for it. */
  async #open(): Promise<Keys | null> {
    if (this.#now() - this.#failedAt < DISCOVERY_PAUSE_MS) return null;
    this.#opening ??= this.#discover().finally(() => {
      this.#opening = null;
    });
    return this.#opening;
  }

  async #discover(): Promise<Keys | null> {
    try {
      const { issuer, clearText } = this.#settings;
      const url = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
      const answer = await fetch(url, { redirect: "manual", signal: AbortSignal.timeout(DEADLINE_MS) });
      const text = await answer.text();
      if (!answer.ok || text.length > MAX_DESCRIPTION_BYTES) throw new Error(`the provider answered ${answer.status}`);
      const description = Description.parse(JSON.parse(text));
      if (description.issuer !== issuer) throw new Error("the provider has another issuer than MUSTER_OIDC_ISSUER");
      const at = new URL(description.jwks_uri);
      if (at.protocol !== "https:" && !clearText) throw new Error("the provider's keys are not at an https URL");
      const { keysPauseMs, keysMaxAgeMs } = this.#patience;
      const times = { timeoutDuration: DEADLINE_MS, cooldownDuration: keysPauseMs, cacheMaxAge: keysMaxAgeMs };
      const last = {};
      this.#keys = { remote: createRemoteJWKSet(at, { ...times, [jwksCache]: last }), last };
      return this.#keys;
    } catch {
      this.#failedAt = this.#now();
      return null;
    }
  }
}

const refused = (fault: AccessTokenFault): Verified => ({ kind: "refused", fault });

const OF_CLAIM: Readonly<Record<string, AccessTokenFault>> = {
  iss: "issuer",
  aud: "audience",
  typ: "type",
  nbf: "not_yet_valid",
};

function verdictOf(error: unknown): Verified {
  if (error instanceof errors.JWTExpired) return refused("expired");
  if (error instanceof errors.JWTClaimValidationFailed)
    return refused(
      error.reason === "missing" && error.claim !== "typ" ? missing(error.claim) : (OF_CLAIM[error.claim] ?? "claims"),
    );
  if (error instanceof errors.JOSEAlgNotAllowed) return refused("algorithm");
  if (error instanceof errors.JWSSignatureVerificationFailed) return refused("signature");
  if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys)
    return refused("signature");
  if (
    error instanceof errors.JWSInvalid ||
    error instanceof errors.JWTInvalid ||
    error instanceof errors.JOSENotSupported
  )
    return refused("malformed");
  return { kind: "provider_away" };
}

const missing = (claim: string): AccessTokenFault =>
  claim === "iss" || claim === "aud" ? (OF_CLAIM[claim] ?? "claims") : "claims";
