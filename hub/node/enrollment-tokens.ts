import { createHash, randomBytes } from "node:crypto";
import type { NodeId, WorkflowId } from "../../shared/ids.ts";
import { Secret } from "../../shared/secret.ts";
import { and, eq, isNull, sql } from "../db/orm.ts";
import { enrollmentTokens, nodes } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";

export const tokenHash = (token: string): string => createHash("sha256").update(token).digest("hex");

export interface TokenRequest {
  readonly nodeId: NodeId;
  readonly workflowId: WorkflowId | null;
  readonly generation: number;
  readonly maasSystemId: string | null;
  /** Lower case; when any is given, the host must have one of them. */
  readonly boundMacs: readonly string[];
  readonly ttlSeconds: number;
}

/** A one-time token of 32 random bytes; only its hash is kept. Unused ones of the node are revoked, and the node is at its generation. */
export async function issueEnrollmentToken(
  tx: Tx,
  request: TokenRequest,
): Promise<{ tokenId: string; token: Secret; expiresAt: Date }> {
  await revokeEnrollmentTokens(tx, request.nodeId);
  await tx
    .update(nodes)
    .set({ generation: request.generation, updatedAt: sql`now()` })
    .where(eq(nodes.id, request.nodeId));
  const token = randomBytes(32).toString("base64url");
  const { ttlSeconds, boundMacs, ...bound } = request;
  const [row] = await tx
    .insert(enrollmentTokens)
    .values({
      ...bound,
      boundMacs: [...boundMacs],
      tokenSha256: tokenHash(token),
      expiresAt: sql`now() + make_interval(secs => ${ttlSeconds})`,
    })
    .returning({ id: enrollmentTokens.id, expiresAt: enrollmentTokens.expiresAt });
  if (row === undefined) throw new Error("the enrollment token was not stored");
  return { tokenId: row.id, token: new Secret(token), expiresAt: row.expiresAt };
}

export async function revokeEnrollmentTokens(tx: Tx, nodeId: NodeId): Promise<void> {
  await tx
    .update(enrollmentTokens)
    .set({ revokedAt: sql`now()` })
    .where(
      and(eq(enrollmentTokens.nodeId, nodeId), isNull(enrollmentTokens.usedAt), isNull(enrollmentTokens.revokedAt)),
    );
}
