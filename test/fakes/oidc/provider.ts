import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { exportJWK, generateKeyPair, type JWK, SignJWT } from "jose";
import { type Configuration, Provider } from "oidc-provider";

/** The claims of a person, which a test may change between two sign-ins. */
export interface Account {
  readonly preferred_username: string;
  groups: string[];
  /** Further claims, for example the marks of a left-out list of groups. */
  readonly [claim: string]: unknown;
}

export const PAGE_CLIENT = { id: "muster-page", secret: "page-secret-of-the-tests" } as const;
export const CLI_CLIENT = "muster-cli";
export const MACHINE_CLIENT = { id: "scheduler", secret: "machine-secret-of-the-tests" } as const;
export const RESOURCE = "https://muster.example/api";

interface SigningKey {
  readonly kid: string;
  readonly key: CryptoKey;
  readonly jwk: JWK;
}
type CryptoKey = Awaited<ReturnType<typeof generateKeyPair>>["privateKey"];

let made = 0;
export async function makeKey(alg = "ES256"): Promise<SigningKey> {
  const { privateKey } = await generateKeyPair(alg, { extractable: true });
  made += 1;
  const kid = `key-${made}`;
  return { kid, key: privateKey, jwk: { ...(await exportJWK(privateKey)), kid, alg, use: "sig" } };
}

/**
 * A conforming OpenID Connect provider on loopback. Its sign-in form needs no typing: the provider signs in the account that `signsIn` names. The
 * refresh tokens rotate, and access tokens for `RESOURCE` are JWTs.
 */
export class TestProvider {
  readonly accounts = new Map<string, Account>();
  /** The account that the provider's form signs in next, or null for a person who refuses. */
  signsIn: string | null = "ann";
  /** The requests that the provider got, as method and path. */
  readonly asked: string[] = [];
  /** If set, the provider answers each request with this status, as an overloaded provider does. */
  failsWith: number | null = null;
  /** If set, the provider answers the next question of a device by `slow_down` (RFC 8628), and deletes the mark. */
  slowDownOnce = false;
  readonly #server: Server;
  #provider: Provider | null = null;
  #key: SigningKey;
  readonly #redirectUris: string[];
  issuer = "";

  private constructor(key: SigningKey, redirectUris: string[]) {
    this.#key = key;
    this.#redirectUris = redirectUris;
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  static async start(redirectUris: readonly string[], port = 0): Promise<TestProvider> {
    const one = new TestProvider(await makeKey(), [...redirectUris]);
    await new Promise<void>((resolve) => one.#server.listen(port, "127.0.0.1", resolve));
    const address = one.#server.address();
    if (address === null || typeof address === "string") throw new Error("the provider has no port");
    one.issuer = `http://127.0.0.1:${address.port}`;
    one.#provider = one.#make();
    return one;
  }

  get key(): SigningKey {
    return this.#key;
  }

  /** From now on the provider signs with another key, and no longer shows the earlier one. */
  async rotateKey(alg?: string): Promise<void> {
    this.#key = await makeKey(alg);
    this.#provider = this.#make();
  }

  /** Signs an access token of a person who signed in by the command line. A test may change every part. */
  async accessToken(
    claims: Record<string, unknown> = {},
    { header = {}, key = this.#key }: { header?: Record<string, unknown>; key?: SigningKey } = {},
  ): Promise<string> {
    const now = Math.floor(Date.now() / 1000);
    const issued = { iss: this.issuer, aud: RESOURCE, iat: now, exp: now + 300 };
    const all = { ...issued, sub: "ann", client_id: CLI_CLIENT, ...claims };
    const present = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
    const protectedHeader = { alg: String(key.jwk.alg), typ: "at+jwt", kid: key.kid, ...header };
    return new SignJWT(present).setProtectedHeader(protectedHeader).sign(key.key);
  }

  /** Stops answering. Programs that connect get a refused connection. */
  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => void this.#server.close(() => resolve()));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = new URL(request.url ?? "/", this.issuer).pathname;
    this.asked.push(`${request.method} ${path}`);
    const provider = this.#provider;
    if (provider === null || this.failsWith !== null) {
      response.writeHead(this.failsWith ?? 503).end();
      return;
    }
    if (path === "/token" && this.slowDownOnce) {
      this.slowDownOnce = false;
      response.writeHead(400, { "content-type": "application/json" }).end('{"error":"slow_down"}');
      return;
    }
    if (path.startsWith("/interaction/")) return this.#signIn(provider, request, response);
    await provider.callback()(request, response);
  }

  async #signIn(provider: Provider, request: IncomingMessage, response: ServerResponse): Promise<void> {
    await provider.interactionDetails(request, response);
    const result =
      this.signsIn === null
        ? { error: "access_denied", error_description: "the person said no" }
        : { login: { accountId: this.signsIn } };
    await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
  }

  #make(): Provider {
    const { accounts } = this;
    const alg = String(this.#key.jwk.alg) as "ES256";
    const provider: Provider = new Provider(this.issuer, {
      ...POLICY,
      jwks: { keys: [this.#key.jwk as never] },
      clients: clientsOf(alg, this.#redirectUris),
      features: featuresOf(alg),
      findAccount: (_, id) => {
        const account = accounts.get(id);
        return account === undefined
          ? undefined
          : { accountId: id, claims: () => ({ sub: id, ...account }) as { sub: string } };
      },
      extraTokenClaims: (_, token) => {
        if (token.kind === "ClientCredentials") return { groups: ["machines"] };
        return accounts.get("accountId" in token ? String(token.accountId) : "") ?? {};
      },
      // Each person has agreed before, so no form asks for the person's consent.
      loadExistingGrant: async (context) => {
        const { client: by, session } = context.oidc;
        if (by === undefined || session?.accountId === undefined) return undefined;
        const grant = new provider.Grant({ clientId: by.clientId, accountId: session.accountId });
        grant.addOIDCScope("openid profile groups offline_access");
        grant.addResourceScope(RESOURCE, "muster");
        await grant.save();
        return grant;
      },
    });
    return provider;
  }
}

function clientsOf(alg: "ES256", redirectUris: string[]): NonNullable<Configuration["clients"]> {
  const signed = { id_token_signed_response_alg: alg, response_types: [] as [] };
  return [
    {
      ...signed,
      client_id: PAGE_CLIENT.id,
      client_secret: PAGE_CLIENT.secret,
      redirect_uris: redirectUris,
      response_types: ["code"],
      grant_types: ["authorization_code", "refresh_token"],
    },
    {
      ...signed,
      client_id: CLI_CLIENT,
      token_endpoint_auth_method: "none",
      redirect_uris: [],
      grant_types: ["urn:ietf:params:oauth:grant-type:device_code", "refresh_token"],
    },
    {
      ...signed,
      client_id: MACHINE_CLIENT.id,
      client_secret: MACHINE_CLIENT.secret,
      redirect_uris: [],
      grant_types: ["client_credentials"],
    },
  ];
}

const featuresOf = (alg: "ES256"): NonNullable<Configuration["features"]> => ({
  devInteractions: { enabled: false },
  deviceFlow: { enabled: true },
  clientCredentials: { enabled: true },
  revocation: { enabled: true },
  resourceIndicators: {
    enabled: true,
    defaultResource: () => undefined as never,
    useGrantedResource: () => true,
    getResourceServerInfo: () => ({
      scope: "muster",
      audience: RESOURCE,
      accessTokenFormat: "jwt" as const,
      accessTokenTTL: 300,
      jwt: { sign: { alg } },
    }),
  },
});

const POLICY: Configuration = {
  cookies: { keys: ["cookie-key-of-the-tests"] },
  scopes: ["openid", "offline_access", "profile", "groups"],
  claims: { openid: ["sub"], profile: ["preferred_username"], groups: ["groups", "_claim_names", "hasgroups"] },
  enabledJWA: { idTokenSigningAlgValues: ["ES256", "RS256", "PS256", "EdDSA"] },
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  issueRefreshToken: async (_, one) => one.grantTypeAllowed("refresh_token"),
  rotateRefreshToken: true,
  ttl: {
    AccessToken: 300,
    AuthorizationCode: 60,
    ClientCredentials: 300,
    DeviceCode: 600,
    Grant: 86_400,
    IdToken: 3_600,
    Interaction: 600,
    RefreshToken: 86_400,
    Session: 86_400,
  },
};
