import { z } from "zod";
import { Timestamp } from "./values.ts";

/** A session of a browser on the operators' page. No answer of the API contains the value of the session's cookie. */
export const PageSession = z.strictObject({
  id: z.uuid(),
  name: z.string().describe("The name of the token, or `oidc:` and the name of the person"),
  token_id: z
    .uuid()
    .nullable()
    .describe("The token with which somebody signed in; null after a sign-in by the provider"),
  subject: z
    .string()
    .nullable()
    .describe("The provider's lasting name of the person; null after a sign-in with a token"),
  address: z.string().describe("The address from which the browser, or a proxy before the hub, signed in"),
  user_agent: z.string(),
  created_at: Timestamp,
  last_used_at: Timestamp.describe("The time of the last use, to the minute"),
  expires_at: Timestamp.describe("The time at which the session ends at the latest"),
});

/** What a client needs to know to sign in through the hub's OpenID Connect provider. */
export const SignInOffer = z.strictObject({
  provider: z
    .strictObject({
      issuer: z.string(),
      client_id: z.string().describe("The client of the command line, for the device flow"),
      scopes: z.string(),
      resource: z.string().nullable().describe("The resource for which a client asks an access token (RFC 8707)"),
    })
    .nullable()
    .describe("null if the hub has no provider"),
});
