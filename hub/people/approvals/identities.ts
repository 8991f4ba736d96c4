import type { TokenId } from "../../../shared/api/tokens.ts";
import { readToken } from "../../db/queries/api-tokens.ts";
import type { Db, Tx } from "../../db/tx.ts";
import type { Actor } from "../actor.ts";

/** In `api_tokens.known_to`: nobody knows who has seen the secret of the token, because an older version of the hub made it. */
const ANYBODY = "anybody";

type Caller = Pick<Actor, "personId" | "tokenId" | "name">;

/** The owner of the caller's credential: a person who signed in, or an API token. */
export function callerKey({ personId, tokenId, name }: Caller): string {
  if (personId !== null) return `person:${personId}`;
  if (tokenId !== null) return `token:${tokenId}`;
  throw new Error(`${name} has no credential, and so cannot ask for or give an approval`);
}

/**
 * Everybody who may be the caller: the person who signed in, or everybody who has seen the secret of the caller's token (decision I11). A token counts
 * as its creator, so nobody approves their own request by a token that they have made or rotated.
 */
export async function identitiesOf(db: Db | Tx, caller: Caller): Promise<readonly string[]> {
  const key = callerKey(caller);
  if (caller.personId !== null || caller.tokenId === null) return [key];
  const token = await readToken(db, caller.tokenId as TokenId);
  return token === null || token.knownTo.length === 0 ? [key] : token.knownTo;
}

/** True if both sets may name one person. */
export const mayBeOne = (some: readonly string[], others: readonly string[]): boolean =>
  some.includes(ANYBODY) || others.includes(ANYBODY) || some.some((one) => others.includes(one));
