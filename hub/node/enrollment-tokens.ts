import { createHash, randomBytes } from "node:crypto";
import { Secret } from "../../shared/secret.ts";
import { insertEnrollmentToken, revokeEnrollmentTokens, type TokenRequest } from "../db/queries/enrollment-tokens.ts";
import { setGeneration } from "../db/queries/nodes.ts";
import type { Tx } from "../db/tx.ts";

export const tokenHash = (token: string): string => createHash("sha256").update(token).digest("hex");

export const newToken = (): Secret => new Secret(randomBytes(32).toString("base64url"));

/**
 * Issues an enrollment token of 32 random bytes; the database stores only the token's hash. `issueEnrollmentToken` revokes the node's unused
 * enrollment tokens, and gives the node the generation of the new token.
 */
export async function issueEnrollmentToken(
  tx: Tx,
  request: TokenRequest,
): Promise<{ tokenId: string; token: Secret; expiresAt: Date }> {
  await revokeEnrollmentTokens(tx, request.nodeId);
  await setGeneration(tx, request.nodeId, request.generation);
  const token = newToken();
  const { id, expiresAt } = await insertEnrollmentToken(tx, { ...request, tokenSha256: tokenHash(token.reveal()) });
  return { tokenId: id, token, expiresAt };
}
