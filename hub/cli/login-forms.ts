import { z } from "zod";

const Text = z.string().min(1).max(65_536);
const Login = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("token"), token: Text }),
  z.strictObject({
    kind: z.literal("provider"),
    issuer: z.url(),
    client_id: Text,
    resource: z.string().nullable(),
    access_token: Text,
    /** The end of the access token's life in milliseconds since 1970, by the clock of this machine. */
    expires_at: z.number(),
    refresh_token: Text.nullable(),
  }),
]);
export type Login = z.output<typeof Login>;
export type ProviderLogin = Extract<Login, { kind: "provider" }>;
export const Credentials = z.strictObject({ version: z.literal(1), hubs: z.record(z.string(), Login) });
export type Credentials = z.output<typeof Credentials>;
