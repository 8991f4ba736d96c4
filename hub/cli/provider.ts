import * as client from "openid-client";
import type { ProviderLogin } from "./login-forms.ts";
import { plain } from "./output/plain.ts";

/** What the hub says about its provider. */
export interface ProviderOfHub {
  readonly issuer: string;
  readonly client_id: string;
  readonly scopes: string;
  readonly resource: string | null;
}

/** The error of a log-in that the sign-in provider refused or did not answer. */
class LoginError extends Error {
  override readonly name = "LoginError";
}

const DEADLINE_SECONDS = 15;
/** The life of an access token whose life the provider does not say. */
const UNKNOWN_LIFE_SECONDS = 300;

const connect = ({ issuer, client_id }: Pick<ProviderOfHub, "issuer" | "client_id">): Promise<client.Configuration> => {
  const url = new URL(issuer);
  const isOwn = ["127.0.0.1", "[::1]", "localhost"].includes(url.hostname);
  const execute = isOwn ? [client.allowInsecureRequests] : [];
  return client.discovery(url, client_id, {}, client.None(), { timeout: DEADLINE_SECONDS, execute });
};

type Tokens = Awaited<ReturnType<typeof client.refreshTokenGrant>>;

const loginOf = (
  of: Pick<ProviderOfHub, "issuer" | "client_id" | "resource">,
  tokens: Tokens,
  before: string | null,
): ProviderLogin => ({
  kind: "provider",
  issuer: of.issuer,
  client_id: of.client_id,
  resource: of.resource,
  access_token: tokens.access_token,
  expires_at: Date.now() + (tokens.expires_in ?? UNKNOWN_LIFE_SECONDS) * 1000,
  refresh_token: tokens.refresh_token ?? before,
});

const forResource = (resource: string | null): Record<string, string> => (resource === null ? {} : { resource });

/** Logs a person in by the device flow. The person may open the printed address on another device, for example on a laptop beside a server. */
export async function logInByDevice(of: ProviderOfHub, tell: (text: string) => void): Promise<ProviderLogin> {
  return explained(of.issuer, async () => {
    const config = await connect(of);
    const resource = forResource(of.resource);
    const started = await client.initiateDeviceAuthorization(config, { scope: of.scopes, ...resource });
    const { verification_uri: uri, verification_uri_complete: whole, user_code: code } = started;
    const direct = whole === undefined ? "" : `\nOr open this address, which contains the code:\n  ${plain(whole)}`;
    tell(`Open ${plain(uri)} in a browser and enter the code\n  ${plain(code)}${direct}\nWaiting for the browser...\n`);
    // The library openid-client waits between its requests as long as the provider asks, and longer after each answer slow_down (RFC 8628).
    const tokens = await client.pollDeviceAuthorizationGrant(config, started, resource);
    return loginOf(of, tokens, null);
  });
}

export async function renewLogin(login: ProviderLogin): Promise<ProviderLogin> {
  const { refresh_token: refreshToken } = login;
  if (refreshToken === null) throw new LoginError("Your login has expired. Run: muster login");
  return explained(login.issuer, async () => {
    const tokens = await client.refreshTokenGrant(await connect(login), refreshToken, forResource(login.resource));
    return loginOf(login, tokens, refreshToken);
  });
}

/** Tells the provider that the refresh token is no longer used, if the provider has an endpoint to revoke tokens. */
export async function revokeLogin(login: ProviderLogin): Promise<void> {
  if (login.refresh_token === null) return;
  const config = await connect(login);
  if (config.serverMetadata().revocation_endpoint === undefined) return;
  await client.tokenRevocation(config, login.refresh_token, { token_type_hint: "refresh_token" });
}

const WORDS: Readonly<Record<string, string>> = {
  access_denied: "The provider says that the login was refused.",
  expired_token: "Nobody entered the code in time. Run again: muster login",
  invalid_grant: "Your login has ended at the provider. Run: muster login",
};

async function explained<T>(issuer: string, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof client.ResponseBodyError)
      throw new LoginError(WORDS[error.error] ?? `The provider ${issuer} refused: ${plain(error.error)}.`);
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new LoginError(
      `The provider ${issuer} could not be used (${plain(why)}). Check that it runs, then try again.`,
    );
  }
}
