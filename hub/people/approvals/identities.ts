import type { TokenId } from "../../../shared/api/tokens.ts";
import { readToken } from "../../db/queries/api-tokens.ts";
import type { Db, Tx } from "../../db/tx.ts";
import type { Actor } from "../actor.ts";

/** The value in `api_tokens.known_to` if nobody knows who has seen the secret of the token. */
const ANYBODY = "anybody";
const PERSON = "person:";

type Caller = Pick<Actor, "personId" | "machineId" | "tokenId" | "name">;

/** The owner of the caller's credential: a person who signed in, a machine of the identity provider, or an API token. */
export function callerKey({ personId, machineId, tokenId, name }: Caller): string {
  if (personId !== null) return `${PERSON}${personId}`;
  if (machineId !== undefined) return `machine:${machineId}`;
  if (tokenId !== null) return `token:${tokenId}`;
  throw new Error(`${name} has no credential, and so cannot ask for or give an approval`);
}

/** Splits the key of a caller, such as `person:<id>` or `token:<id>`, into its kind and its id. */
export function keyParts(key: string): { readonly kind: string; readonly id: string } {
  const at = key.indexOf(":");
  return { kind: key.slice(0, at), id: key.slice(at + 1) };
}

/**
 * Everybody who may be the owner of a credential: the person who signed in, or everybody who has seen the secret of the token (decision I11). A token
 * counts as its creator, so nobody approves their own request by a token that they have made or rotated. A token that the API did not make, or whose
 * row is gone, may be in the hands of anybody.
 */
export async function identitiesOfKey(db: Db | Tx, key: string): Promise<readonly string[]> {
  const { kind, id } = keyParts(key);
  if (kind !== "token") return [key];
  const knownTo = (await readToken(db, id as TokenId))?.knownTo ?? [];
  return knownTo.length === 0 ? [ANYBODY] : knownTo;
}

export const identitiesOf = (db: Db | Tx, caller: Caller): Promise<readonly string[]> =>
  identitiesOfKey(db, callerKey(caller));

/**
 * True if the hub cannot say which people are behind a caller's identities. A token or a machine is no person: the first admin token, the tokens of
 * older hubs and the machines of the identity provider are known by their ids only, and any person may hold their secrets.
 */
export const mayBeAnybody = (identities: readonly string[]): boolean =>
  identities.length === 0 || identities.some((one) => !one.startsWith(PERSON));

/** The part of an error text that says which credentials anybody may hold, and which credentials tell the hub who a person is. */
export const HOW_TO_BE_KNOWN =
  "The first admin token, a token of an older version, a machine's access token, and each token that one of them has created may be in the hands of anybody. Sign in as a person, or use a token that a person who had signed in has created.";

/** True if the two given sets of identities may include the same person. */
export const mayBeOne = (some: readonly string[], others: readonly string[]): boolean =>
  mayBeAnybody(some) || mayBeAnybody(others) || some.some((one) => others.includes(one));

/**
 * Everybody who may be the requester of an approval: who knew the requester's token when the request came, and who knows the token now. A person who
 * rotates the requester's token after the request can send the request with the new secret, and so counts as the requester too.
 */
export async function requesterIdentities(
  db: Db | Tx,
  { requester, requesterIds }: { readonly requester: string; readonly requesterIds: readonly string[] },
): Promise<readonly string[]> {
  const { kind } = keyParts(requester);
  return kind === "token" ? [...requesterIds, ...(await identitiesOfKey(db, requester))] : requesterIds;
}
