/**
 * The algorithms by which a provider may sign tokens. `SIGNING_ALGORITHMS` contains no algorithm with a shared secret, because a client that knows
 * the secret could sign tokens itself.
 */
export const SIGNING_ALGORITHMS = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
] as const;
export type SigningAlgorithm = (typeof SIGNING_ALGORITHMS)[number];

/** The settings of the provider by which people and machines sign in. */
export interface OidcSettings {
  readonly issuer: string;
  /** True only for a sign-in provider on the hub's own machine, which may use clear text. */
  readonly clearText: boolean;
  readonly clientId: string;
  /**
   * The file with the secret of the OAuth client by which people sign in on the web page; null for a public client, which has no secret. The hub
   * reads the file of its client secret at each sign-in.
   */
  readonly clientSecretFile: string | null;
  readonly cliClientId: string;
  readonly scopes: string;
  readonly cliScopes: string;
  /** The audiences of access tokens that the hub accepts. Without an audience the hub accepts no access token. */
  readonly audiences: readonly string[];
  /** The resource for which the command line and machines ask an access token (RFC 8707). */
  readonly resource: string | null;
  readonly algorithms: readonly SigningAlgorithm[];
  /** The value of `typ` in the header of an access token, or `any` for a provider that marks its access tokens otherwise. */
  readonly tokenType: "at+jwt" | "any";
  readonly rolesFile: string;
  /** The origin at which browsers reach the hub. */
  readonly publicUrl: string;
}
