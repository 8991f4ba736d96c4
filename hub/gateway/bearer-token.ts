import { ApiError } from "../../shared/api/errors.ts";
import { readToken } from "../db/queries/enrollment-tokens.ts";
import type { EnrollmentToken } from "../db/schema/index.ts";
import type { Db } from "../db/tx.ts";
import { tokenHash } from "../node/enrollment-tokens.ts";
import { unknownToken } from "./enroll.ts";

/** The bearer token of a request's Authorization header; null for a request without a bearer token. */
export const bearerToken = (authorization: string | undefined): string | null =>
  /^Bearer ([!-~]{1,200})$/.exec(authorization ?? "")?.[1] ?? null;

/**
 * Checks the enrollment token of a request by a host without a certificate. A check of an enrollment token does not consume the token. `requireToken`
 * throws if the enrollment token is unknown, revoked or expired.
 */
export async function requireToken(db: Db, text: string | null): Promise<{ text: string; token: EnrollmentToken }> {
  const found = text === null ? null : await readToken(db, tokenHash(text));
  if (text === null || found === null || found.token.revokedAt !== null) throw unknownToken();
  if (found.expired)
    throw new ApiError(
      "token_expired",
      `The enrollment token expired at ${found.token.expiresAt.toISOString()}. Deploy the host again, or ask an operator for a new token.`,
    );
  return { text, token: found.token };
}
