import type { Log } from "../../shared/log.ts";
import { AccessTokens } from "./access-token.ts";
import { Provider } from "./provider.ts";
import { RolesFile } from "./roles-file.ts";
import { type Cookies, cookiesOf } from "./session-cookie.ts";
import type { OidcSettings } from "./settings.ts";

/** The parts of a hub by which people and machines sign in through a provider. */
export interface Oidc {
  readonly settings: OidcSettings;
  readonly provider: Provider;
  readonly accessTokens: AccessTokens;
  readonly roles: RolesFile;
}

export interface SignIn {
  readonly cookies: Cookies;
  /** The origin of MUSTER_PUBLIC_URL, or null if the setting is absent. */
  readonly publicOrigin: string | null;
  /** Null if no sign-in provider is set. Without a sign-in provider, people sign in with tokens only. */
  readonly oidc: Oidc | null;
}

export interface SignInSettings {
  readonly publicUrl: string | null;
  /** True if browsers reach the hub by TLS only. */
  readonly secure: boolean;
  readonly oidc: OidcSettings | null;
}

export async function openSignIn({ publicUrl, secure, oidc }: SignInSettings, log: Log): Promise<SignIn> {
  return {
    cookies: cookiesOf(secure),
    publicOrigin: publicUrl === null ? null : new URL(publicUrl).origin,
    oidc:
      oidc === null
        ? null
        : {
            settings: oidc,
            provider: new Provider(oidc),
            accessTokens: new AccessTokens(oidc),
            roles: await RolesFile.open(oidc.rolesFile, log),
          },
  };
}
