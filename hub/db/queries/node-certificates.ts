import type { NodeId } from "../../../shared/ids.ts";
import { and, desc, eq, isNotNull, isNull, lt, sql } from "../orm.ts";
import { type Node, type NodeCertificate, nodeCertificates, nodes } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { SESSION_CHANNEL } from "./agent-sessions.ts";
import { lockNode } from "./nodes.ts";

export type NewCertificate = Omit<NodeCertificate, "issuedAt" | "revokedAt" | "revokeReason">;

export async function keepCertificate(tx: Tx, certificate: NewCertificate): Promise<void> {
  await tx.insert(nodeCertificates).values(certificate);
}

/** When the host last got a certificate in this generation; null when it has not enrolled in it. */
export async function readEnrolledAt(db: Db, nodeId: NodeId, generation: number): Promise<Date | null> {
  const [last] = await db
    .select({ at: nodeCertificates.issuedAt })
    .from(nodeCertificates)
    .where(and(eq(nodeCertificates.nodeId, nodeId), eq(nodeCertificates.generation, generation)))
    .orderBy(desc(nodeCertificates.issuedAt))
    .limit(1);
  return last?.at ?? null;
}

/** The certificate with its node as it is now; null when this hub's database has not issued it. */
export async function readCertificate(
  db: Db,
  serial: string,
): Promise<{ certificate: NodeCertificate; node: Pick<Node, "id" | "generation" | "status"> } | null> {
  const [row] = await db
    .select({
      certificate: nodeCertificates,
      node: { id: nodes.id, generation: nodes.generation, status: nodes.status },
    })
    .from(nodeCertificates)
    .innerJoin(nodes, eq(nodes.id, nodeCertificates.nodeId))
    .where(eq(nodeCertificates.serial, serial));
  return row ?? null;
}

/**
 * Puts certificates of the node on the deny list: all of them, or those below a generation. Sessions that were opened with one are closed,
 * on whichever hub they are. The node is held for it: a renewal that is under way is seen, or sees this. Returns how many
 * were valid.
 */
export async function revokeCertificates(
  tx: Tx,
  nodeId: NodeId,
  which: "all" | { readonly belowGeneration: number },
  reason: string,
): Promise<number> {
  await lockNode(tx, nodeId);
  const revoked = await tx
    .update(nodeCertificates)
    .set({ revokedAt: sql`now()`, revokeReason: reason })
    .where(
      and(
        eq(nodeCertificates.nodeId, nodeId),
        isNull(nodeCertificates.revokedAt),
        which === "all" ? undefined : lt(nodeCertificates.generation, which.belowGeneration),
      ),
    )
    .returning({ serial: nodeCertificates.serial });
  if (revoked.length > 0) await tx.execute(sql`select pg_notify(${SESSION_CHANNEL}, ${nodeId})`);
  return revoked.length;
}

/** True when the certificate is on the deny list, and when there is no such certificate. */
export async function isRevoked(tx: Tx, serial: string): Promise<boolean> {
  const valid = await tx
    .select({ serial: nodeCertificates.serial })
    .from(nodeCertificates)
    .where(and(eq(nodeCertificates.serial, serial), isNull(nodeCertificates.revokedAt)));
  return valid.length === 0;
}

/** True when a certificate for this key of the node was revoked in the present generation: the key itself is banned. */
export async function isKeyRevoked(tx: Tx, nodeId: NodeId, generation: number, keySha256: string): Promise<boolean> {
  const rows = await tx
    .select({ serial: nodeCertificates.serial })
    .from(nodeCertificates)
    .where(
      and(
        eq(nodeCertificates.nodeId, nodeId),
        eq(nodeCertificates.generation, generation),
        eq(nodeCertificates.publicKeySha256, keySha256),
        isNotNull(nodeCertificates.revokedAt),
      ),
    )
    .limit(1);
  return rows.length > 0;
}
