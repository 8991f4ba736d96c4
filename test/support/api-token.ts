import { createHash, randomBytes } from "node:crypto";
import { type NewToken, putApiToken } from "../../hub/db/queries/api-tokens.ts";
import type { TestDatabase } from "./database.ts";

/** Stores an API token with the given role and limits, which only a person of the token's name knows, and returns the token. */
export async function apiToken({ database }: TestDatabase, about: Omit<NewToken, "tokenSha256">): Promise<string> {
  const token = randomBytes(24).toString("base64url");
  const tokenSha256 = createHash("sha256").update(token).digest("hex");
  await database.inTx((tx) => putApiToken(tx, { ...about, tokenSha256 }));
  await database.pool.query("update api_tokens set known_to = array['person:' || name] where name = $1", [about.name]);
  return token;
}
