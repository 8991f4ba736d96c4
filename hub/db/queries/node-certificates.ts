import type { NodeId } from "../../../shared/ids.ts";
import { KEPT_OF_A_NODE } from "../kept.ts";
import { and, desc, eq, isNotNull, isNull, lt, ne, type SQL, sql } from "../orm.ts";
import { type Node, type NodeCertificate, nodeCertificates, nodes } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { SESSION_CHANNEL } from "./agent-sessions.ts";
import { lockNode } from "./nodes.ts";

export type NewCertificate = Pick<
  NodeCertificate,
  "serial" | "nodeId" | "generation" | "publicKeySha256" | "notBefore" | "notAfter"
> & { readonly pem: string };

const ofChain = (nodeId: NodeId, generation: number, more?: SQL) =>
  and(
    eq(nodeCertificates.nodeId, nodeId),
    eq(nodeCertificates.generation, generation),
    isNull(nodeCertificates.replacedAt),
    isNull(nodeCertificates.revokedAt),
    more,
  );

/**
 * What was given to this key and is not used yet, with at least half of its life left. The node is held: whoever asks again is given it again, however
 * the requests overlap.
 */
export async function readUnused(
  tx: Tx,
  nodeId: NodeId,
  generation: number,
  keySha256: string,
): Promise<(NodeCertificate & { readonly pem: string }) | null> {
  const { notBefore, notAfter } = nodeCertificates;
  const young = sql`${notAfter} - now() > (${notAfter} - ${notBefore}) / 2`;
  const [found] = await tx
    .select()
    .from(nodeCertificates)
    .where(
      ofChain(
        nodeId,
        generation,
        and(
          eq(nodeCertificates.publicKeySha256, keySha256),
          isNull(nodeCertificates.firstUsedAt),
          isNotNull(nodeCertificates.pem),
          young,
        ),
      ),
    )
    .limit(1);
  return found?.pem == null ? null : { ...found, pem: found.pem };
}

/** Keeps one that is not used yet; another one that nobody has used gives way, and of the replaced ones the oldest goes. The node is held. */
export async function keepCertificate(tx: Tx, certificate: NewCertificate): Promise<void> {
  await tx
    .update(nodeCertificates)
    .set({ replacedAt: sql`now()`, pem: null })
    .where(ofChain(certificate.nodeId, certificate.generation, isNull(nodeCertificates.firstUsedAt)));
  await tx.insert(nodeCertificates).values(certificate);
  await tx.execute(sql`
    delete from ${nodeCertificates} where replaced_at is not null and serial in (
      select c.serial from ${nodeCertificates} c where c.node_id = ${certificate.nodeId}
      order by c.issued_at desc, c.serial offset ${KEPT_OF_A_NODE.certificates})`);
}

/** Its first use ends all that were issued before it, and their sessions on whichever hub they are. False when it is void itself by now. */
export async function beginUse(tx: Tx, nodeId: NodeId, generation: number, serial: string): Promise<boolean> {
  await lockNode(tx, nodeId);
  const [used] = await tx
    .update(nodeCertificates)
    .set({ firstUsedAt: sql`coalesce(${nodeCertificates.firstUsedAt}, now())`, pem: null })
    .where(ofChain(nodeId, generation, eq(nodeCertificates.serial, serial)))
    .returning({ issuedAt: nodeCertificates.issuedAt });
  if (used === undefined) return false;
  const before = sql`${nodeCertificates.issuedAt} <= (select s.issued_at from ${nodeCertificates} s where s.serial = ${serial})`;
  const ended = await tx
    .update(nodeCertificates)
    .set({ replacedAt: sql`now()`, pem: null })
    .where(ofChain(nodeId, generation, and(ne(nodeCertificates.serial, serial), before)))
    .returning({ serial: nodeCertificates.serial });
  if (ended.length > 0) await tx.execute(sql`select pg_notify(${SESSION_CHANNEL}, ${nodeId})`);
  return true;
}

/** Remembers when a replaced certificate was first presented again. */
export async function noteReplacedUse(tx: Tx, serial: string): Promise<void> {
  await tx
    .update(nodeCertificates)
    .set({ replacedSeenAt: sql`coalesce(${nodeCertificates.replacedSeenAt}, now())` })
    .where(eq(nodeCertificates.serial, serial));
}

/** What became of a key of the node in the generation. A key is revoked with the first of its certificates: the key itself is banned. */
export async function readKeyUse(
  tx: Tx,
  nodeId: NodeId,
  generation: number,
  keySha256: string,
): Promise<"unknown" | "counts" | "over" | "revoked"> {
  const rows = await tx
    .select({ replacedAt: nodeCertificates.replacedAt, revokedAt: nodeCertificates.revokedAt })
    .from(nodeCertificates)
    .where(
      and(
        eq(nodeCertificates.nodeId, nodeId),
        eq(nodeCertificates.generation, generation),
        eq(nodeCertificates.publicKeySha256, keySha256),
      ),
    );
  if (rows.length === 0) return "unknown";
  if (rows.some((row) => row.revokedAt !== null)) return "revoked";
  return rows.some((row) => row.replacedAt === null) ? "counts" : "over";
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
  db: Db | Tx,
  serial: string,
): Promise<{
  certificate: NodeCertificate;
  replacedSeenForMs: number | null;
  node: Pick<Node, "id" | "generation" | "status">;
} | null> {
  const [row] = await db
    .select({
      certificate: nodeCertificates,
      replacedSeenForMs: sql<
        number | null
      >`(extract(epoch from now() - ${nodeCertificates.replacedSeenAt}) * 1000)::float8`,
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

/** True when the node has an identity in this generation; one whose certificate has run out renews it. */
export async function hasLiveCertificate(tx: Tx, nodeId: NodeId, generation: number): Promise<boolean> {
  const rows = await tx
    .select({ serial: nodeCertificates.serial })
    .from(nodeCertificates)
    .where(
      and(
        eq(nodeCertificates.nodeId, nodeId),
        eq(nodeCertificates.generation, generation),
        isNull(nodeCertificates.revokedAt),
      ),
    )
    .limit(1);
  return rows.length > 0;
}

/** True when the node has ever had an identity: retention keeps its newest certificate. */
export async function hasEnrolled(tx: Db | Tx, nodeId: NodeId): Promise<boolean> {
  const rows = await tx
    .select({ serial: nodeCertificates.serial })
    .from(nodeCertificates)
    .where(eq(nodeCertificates.nodeId, nodeId))
    .limit(1);
  return rows.length > 0;
}

/** True when the certificate is on the deny list or replaced, and when there is no such certificate. */
export async function isVoid(tx: Tx, serial: string): Promise<boolean> {
  const valid = await tx
    .select({ serial: nodeCertificates.serial })
    .from(nodeCertificates)
    .where(
      and(eq(nodeCertificates.serial, serial), isNull(nodeCertificates.revokedAt), isNull(nodeCertificates.replacedAt)),
    );
  return valid.length === 0;
}
