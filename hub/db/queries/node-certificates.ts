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
 * Returns the node's unused certificate for the key `keySha256`, if at least half of the certificate's lifetime is left. The caller of `readUnused`
 * has locked the node, so simultaneous requests of one agent all get one certificate.
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

/**
 * `keepCertificate` marks the node's former unused certificate as replaced, and deletes the node's oldest replaced certificates. The caller of
 * `keepCertificate` has locked the row of the node.
 */
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

/**
 * The first use of a certificate replaces the node's earlier certificates, and ends their agent sessions on every hub. `beginUse` returns false if
 * the certificate itself has been replaced or revoked.
 */
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

/** The facts about a node's stored certificates, by which the hub decides whether it accepts a certificate that is not stored. */
export async function readOtherCertificates(
  tx: Tx,
  nodeId: NodeId,
  generation: number,
  issuedAt: Date,
): Promise<{ readonly revoked: boolean; readonly laterInUse: boolean }> {
  const { firstUsedAt, issuedAt: issued, revokedAt } = nodeCertificates;
  const rows = await tx
    .select({ revokedAt, firstUsedAt, issuedAt: issued })
    .from(nodeCertificates)
    .where(and(eq(nodeCertificates.nodeId, nodeId), eq(nodeCertificates.generation, generation)));
  return {
    revoked: rows.some((row) => row.revokedAt !== null),
    laterInUse: rows.some((row) => row.firstUsedAt !== null && row.issuedAt >= issuedAt),
  };
}

export type FoundCertificate = Omit<NewCertificate, "pem"> & Pick<NodeCertificate, "issuedAt">;

/**
 * Stores a certificate that the hub issued and whose row was lost. If two requests bring the same lost certificate, `keepFoundCertificate` stores the
 * certificate only once.
 */
export async function keepFoundCertificate(tx: Tx, found: FoundCertificate, isReplaced: boolean): Promise<void> {
  await tx
    .insert(nodeCertificates)
    .values({ ...found, replacedAt: isReplaced ? sql`now()` : null })
    .onConflictDoNothing();
}

export async function noteReplacedUse(tx: Tx, serial: string): Promise<void> {
  await tx
    .update(nodeCertificates)
    .set({ replacedSeenAt: sql`coalesce(${nodeCertificates.replacedSeenAt}, now())` })
    .where(eq(nodeCertificates.serial, serial));
}

/**
 * Returns the state of an agent's key, by the node's certificates for this key in the given generation. An agent's key is `unknown` if the node has
 * no certificate for it, and `revoked` if one of its certificates was revoked. An agent's key is `over` if all certificates for the key were
 * replaced. An agent's key has the state `counts`, which means that the host may use it, if at least one of its certificates is not replaced.
 */
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

export async function readEnrolledAt(db: Db, nodeId: NodeId, generation: number): Promise<Date | null> {
  const [last] = await db
    .select({ at: nodeCertificates.issuedAt })
    .from(nodeCertificates)
    .where(and(eq(nodeCertificates.nodeId, nodeId), eq(nodeCertificates.generation, generation)))
    .orderBy(desc(nodeCertificates.issuedAt))
    .limit(1);
  return last?.at ?? null;
}

export interface KnownCertificate {
  readonly certificate: NodeCertificate;
  readonly replacedSeenForMs: number | null;
  readonly node: Pick<Node, "id" | "generation" | "status">;
}

export async function readCertificate(db: Db | Tx, serial: string): Promise<KnownCertificate | null> {
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
 * Revokes all certificates of a node, or the certificates of generations below the given generation. All hubs close the sessions that were opened
 * with a revoked certificate. `revokeCertificates` locks the node, so a simultaneous renewal either sees the revocation or gets its new certificate
 * revoked too.
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

/** `hasLiveCertificate` also counts an expired certificate, because the agent can renew an expired certificate. */
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

/** `hasEnrolled` needs to search only for a certificate of the node, because retention keeps a node's newest certificate. */
export async function hasEnrolled(tx: Db | Tx, nodeId: NodeId): Promise<boolean> {
  const rows = await tx
    .select({ serial: nodeCertificates.serial })
    .from(nodeCertificates)
    .where(eq(nodeCertificates.nodeId, nodeId))
    .limit(1);
  return rows.length > 0;
}

export async function isVoid(tx: Tx, serial: string): Promise<boolean> {
  const valid = await tx
    .select({ serial: nodeCertificates.serial })
    .from(nodeCertificates)
    .where(
      and(eq(nodeCertificates.serial, serial), isNull(nodeCertificates.revokedAt), isNull(nodeCertificates.replacedAt)),
    );
  return valid.length === 0;
}
