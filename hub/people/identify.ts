import { createHash } from "node:crypto";
import { findTokenHolder } from "../db/queries/api-tokens.ts";
import { EVERYWHERE } from "../db/queries/reach.ts";
import type { Db } from "../db/tx.ts";
import { within } from "../timing/pause.ts";
import type { Actor } from "./actor.ts";

/** What a request proves its sender with. The hub counts requests by the hash of the bearer token, before it knows whether the token is valid. */
export interface Credential {
  readonly token: string;
  readonly tokenSha256: string;
}

export function credentialOf(authorization: string | undefined): Credential | null {
  const token = /^Bearer +([\x21-\x7e]{1,512})$/i.exec(authorization ?? "")?.[1];
  if (token === undefined) return null;
  return { token, tokenSha256: createHash("sha256").update(token).digest("hex") };
}

/** The longest time that the hub waits for the database, if the hub can identify the client without the database. */
const LOOKUP_MS = 3_000;

export interface Identifiers {
  readonly db: Db;
  /** True for the admin token in the hub's state folder. The hub checks the admin token without its database. */
  readonly isAdminToken: (token: string) => Promise<boolean>;
}

/** The admin token of the hub's state folder, as the hub knows it while the database with the tokens does not answer. */
const FIRST_ADMIN: Actor = {
  ...EVERYWHERE,
  name: "admin",
  via: "token",
  role: "admin",
  tokenId: null,
  personId: null,
};

/** The only function that makes an actor from a request. Returns null if the credential is not valid (any more). */
export async function identify(
  credential: Credential,
  { withoutDatabase }: { readonly withoutDatabase: boolean },
  { db, isAdminToken }: Identifiers,
): Promise<Actor | null> {
  // The database finds the API token by the token's hash, so the duration of the look-up reveals nothing about the token.
  const held = holderOf(db, credential.tokenSha256);
  if (!withoutDatabase) return held;
  const known = held.then(
    (actor) => ({ actor }),
    () => null,
  );
  const found = await within(LOOKUP_MS, known);
  if (found !== null) return found.actor;
  return (await isAdminToken(credential.token)) ? FIRST_ADMIN : held;
}

async function holderOf(db: Db, tokenSha256: string): Promise<Actor | null> {
  const token = await findTokenHolder(db, tokenSha256);
  return token === null ? null : { ...token, via: "token", personId: null };
}
