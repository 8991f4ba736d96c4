import type { OidcSettings } from "../../hub/sign-in/settings.ts";
import { CLI_CLIENT, PAGE_CLIENT, RESOURCE } from "../fakes/oidc/provider.ts";

/** The settings of a hub that uses the provider of the tests. Values in `more` override the settings. */
export const oidcSettings = (
  provider: { readonly issuer: string },
  more: Partial<OidcSettings> = {},
): OidcSettings => ({
  issuer: provider.issuer,
  clearText: true,
  clientId: PAGE_CLIENT.id,
  clientSecretFile: null,
  cliClientId: CLI_CLIENT,
  scopes: "openid profile groups",
  cliScopes: "openid profile groups offline_access",
  audiences: [RESOURCE],
  resource: RESOURCE,
  algorithms: ["ES256"],
  tokenType: "at+jwt",
  rolesFile: "/nowhere",
  publicUrl: "http://127.0.0.1:1",
  ...more,
});
