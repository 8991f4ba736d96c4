import type { Claims } from "./role-rules.ts";

/** The claims by which providers name the client that got an access token: RFC 9068, OpenID Connect, Okta and Entra ID. */
const CLIENT_CLAIMS = ["client_id", "azp", "cid", "appid"] as const;

/** The marks by which Auth0 and Entra ID say that an access token is of a program. */
const MACHINE_MARKS: Claims = { gty: "client-credentials", idtyp: "app" };

function clientOf(claims: Claims): unknown {
  const named = CLIENT_CLAIMS.find((name) => claims[name] !== undefined);
  if (named !== undefined) return claims[named];
  // If no claim names the client of a token, the token's only audience is the client (OpenID Connect Core, section 2).
  const audiences = [claims["aud"]].flat();
  return audiences.length === 1 ? audiences[0] : undefined;
}

/**
 * True if an access token is of a person who signed in by the command line. Everybody who knows the secret of an OAuth client other than the command
 * line can get access tokens of that client, so the hub cannot tell who sends such a token (decision I11).
 */
export function isOfPerson(claims: Claims, cliClientId: string): boolean {
  const isMarked = Object.entries(MACHINE_MARKS).some(([name, value]) => claims[name] === value);
  return !isMarked && clientOf(claims) === cliClientId && claims["sub"] !== cliClientId;
}
