import type { NodeId } from "../../../shared/ids.ts";
import type { RecordLocation } from "../../../shared/sanitization-certificate.ts";
import type { RecordVerdict } from "../../../shared/sanitization-record.ts";
import { lockUntilCommit } from "../advisory-locks.ts";
import { and, asc, desc, eq, gt, isNotNull, isNull, type SQL, sql } from "../orm.ts";
import {
  agentSessions,
  maasSites,
  nodeCertificates,
  nodeInventories,
  nodeMaasState,
  nodes,
  type SanitizationRecordRow,
  sanitizationRecords,
} from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { isWithin, type Reach } from "./reach.ts";

export type ChainEnd = Pick<SanitizationRecordRow, "sequence" | "recordSha256"> | null;

export async function lockSanitizationChain(tx: Tx, nodeId: NodeId): Promise<ChainEnd> {
  await lockUntilCommit(tx, "sanitization_chain", nodeId);
  const [last] = await tx
    .select({ sequence: sanitizationRecords.sequence, recordSha256: sanitizationRecords.recordSha256 })
    .from(sanitizationRecords)
    .where(eq(sanitizationRecords.nodeId, nodeId))
    .orderBy(desc(sanitizationRecords.sequence))
    .limit(1);
  return last ?? null;
}

/** Returns the id of the allocation's newest sanitization record, or null if the allocation has no sanitization record yet. */
export async function lastRecordOfAllocation(tx: Tx, nodeId: NodeId, allocationId: string): Promise<string | null> {
  const [last] = await tx
    .select({ id: sanitizationRecords.recordId })
    .from(sanitizationRecords)
    .where(and(eq(sanitizationRecords.allocationId, allocationId), eq(sanitizationRecords.nodeId, nodeId)))
    .orderBy(desc(sanitizationRecords.sequence))
    .limit(1);
  return last?.id ?? null;
}

/** Returns the verdict of the allocation's newest sanitization record, or null if it has none yet. */
export async function lastVerdictOfAllocation(
  db: Db | Tx,
  nodeId: NodeId,
  allocationId: string,
): Promise<RecordVerdict | null> {
  const [last] = await db
    .select({ verdict: sanitizationRecords.verdict })
    .from(sanitizationRecords)
    .where(and(eq(sanitizationRecords.allocationId, allocationId), eq(sanitizationRecords.nodeId, nodeId)))
    .orderBy(desc(sanitizationRecords.sequence))
    .limit(1);
  return last?.verdict ?? null;
}

/** The caller of `addSanitizationRecord` has locked the node's chain of sanitization records. */
export async function addSanitizationRecord(
  tx: Tx,
  row: typeof sanitizationRecords.$inferInsert,
): Promise<SanitizationRecordRow> {
  const [added] = await tx.insert(sanitizationRecords).values(row).returning();
  if (added === undefined) throw new Error(`sanitization record ${row.recordId} was not stored`);
  return added;
}

export async function readSanitizationRecord(db: Db | Tx, recordId: string): Promise<SanitizationRecordRow | null> {
  const [row] = await db.select().from(sanitizationRecords).where(eq(sanitizationRecords.recordId, recordId));
  return row ?? null;
}

export interface RecordSubject {
  readonly hostname: string;
  readonly generation: number;
  readonly systemId: string | null;
  readonly inventory: unknown;
  readonly assetTag: string | null;
  /** `location` is null if the hub no longer has the node. */
  readonly location: RecordLocation | null;
  readonly agent: {
    readonly version: string;
    readonly bootId: string;
    readonly certificateSerial: string;
    readonly publicKeySha256: string;
  } | null;
}

export async function readRecordSubject(tx: Tx, nodeId: NodeId): Promise<RecordSubject | null> {
  const [row] = await tx
    .select({
      node: nodes,
      site: maasSites.name,
      systemId: nodeMaasState.maasSystemId,
      inventory: nodeInventories.inventory,
      session: { version: agentSessions.agentVersion, bootId: agentSessions.bootId },
      certificate: { serial: nodeCertificates.serial, publicKeySha256: nodeCertificates.publicKeySha256 },
    })
    .from(nodes)
    .leftJoin(maasSites, eq(maasSites.id, nodes.siteId))
    .leftJoin(nodeMaasState, eq(nodeMaasState.nodeId, nodes.id))
    .leftJoin(nodeInventories, eq(nodeInventories.nodeId, nodes.id))
    .leftJoin(agentSessions, and(eq(agentSessions.nodeId, nodes.id), eq(agentSessions.generation, nodes.generation)))
    .leftJoin(
      nodeCertificates,
      and(
        eq(nodeCertificates.nodeId, nodes.id),
        eq(nodeCertificates.generation, nodes.generation),
        isNotNull(nodeCertificates.firstUsedAt),
        isNull(nodeCertificates.replacedAt),
        isNull(nodeCertificates.revokedAt),
      ),
    )
    .where(eq(nodes.id, nodeId))
    .orderBy(desc(nodeCertificates.issuedAt))
    .limit(1);
  if (row === undefined) return null;
  const { node, site, systemId, inventory, session, certificate } = row;
  const { hostname, generation, assetTag, room, rack, unit } = node;
  const agent =
    session === null || certificate === null
      ? null
      : {
          version: session.version,
          bootId: session.bootId,
          certificateSerial: certificate.serial,
          publicKeySha256: certificate.publicKeySha256,
        };
  const location = { site, room, rack, unit };
  return { hostname, generation, systemId, inventory: inventory ?? null, assetTag, location, agent };
}

/** True if the hub issued the certificate to the node, for the named key and generation, and nobody has revoked the certificate. */
export async function isIssuedTo(
  tx: Tx,
  nodeId: NodeId,
  certificate: { readonly serial: string; readonly publicKeySha256: string; readonly generation: number },
): Promise<boolean> {
  const rows = await tx
    .select({ serial: nodeCertificates.serial })
    .from(nodeCertificates)
    .where(
      and(
        eq(nodeCertificates.nodeId, nodeId),
        eq(nodeCertificates.serial, certificate.serial),
        eq(nodeCertificates.publicKeySha256, certificate.publicKeySha256),
        eq(nodeCertificates.generation, certificate.generation),
        isNull(nodeCertificates.revokedAt),
      ),
    );
  return rows.length > 0;
}

export interface SanitizationFilter {
  readonly nodeId?: NodeId | undefined;
  readonly hostname?: string | undefined;
  readonly tenant?: string | undefined;
  readonly allocationId?: string | undefined;
  readonly verdict?: RecordVerdict | undefined;
  readonly reach: Reach;
}
/** The field `at` is the time of a sanitization record as text, which keeps the microseconds that a JavaScript Date would cut off. */
export type ListedSanitization = Omit<
  SanitizationRecordRow,
  "text" | "agentSignature" | "agentCertificatePem" | "countersignature" | "hubSignature"
> & { readonly at: string };

/**
 * The site of a record's node. A sanitization record outlives its node, and a caller who is limited to sites does not see a record whose node has no
 * row any more.
 */
const siteOfRecord = sql`(select ${nodes.siteId} from ${nodes} where ${nodes.id} = ${sanitizationRecords.nodeId})`;

export async function listSanitizationRows(
  db: Db,
  filter: SanitizationFilter,
  page: { readonly before: readonly [string, string] | null; readonly limit: number },
): Promise<ListedSanitization[]> {
  const t = sanitizationRecords;
  const conditions: (SQL | undefined)[] = [
    filter.nodeId === undefined ? undefined : eq(t.nodeId, filter.nodeId),
    filter.hostname === undefined ? undefined : eq(t.hostname, filter.hostname),
    filter.tenant === undefined ? undefined : eq(t.tenant, filter.tenant),
    filter.allocationId === undefined ? undefined : eq(t.allocationId, filter.allocationId),
    filter.verdict === undefined ? undefined : eq(t.verdict, filter.verdict),
    isWithin(filter.reach, { site: siteOfRecord, tenant: t.tenant }),
    page.before === null
      ? undefined
      : sql`(${t.createdAt}, ${t.recordId}) < (${page.before[0]}::timestamptz, ${page.before[1]}::uuid)`,
  ];
  return db
    .select({
      recordId: t.recordId,
      nodeId: t.nodeId,
      sequence: t.sequence,
      hostname: t.hostname,
      allocationId: t.allocationId,
      tenant: t.tenant,
      decommissionId: t.decommissionId,
      mode: t.mode,
      trust: t.trust,
      verdict: t.verdict,
      recordSha256: t.recordSha256,
      signedByAgent: t.signedByAgent,
      orderKey: t.orderKey,
      createdAt: t.createdAt,
      at: sql<string>`${t.createdAt}::text`,
    })
    .from(t)
    .where(and(...conditions))
    .orderBy(desc(t.createdAt), desc(t.recordId))
    .limit(page.limit);
}

export type SanitizationHeadRow = Pick<
  SanitizationRecordRow,
  "nodeId" | "hostname" | "recordId" | "sequence" | "recordSha256"
>;

/** Returns the newest sanitization record of each node, in the order of the nodes' ids, also of nodes that were deleted. */
export async function listSanitizationHeads(
  db: Db,
  page: { readonly after: NodeId | null; readonly limit: number; readonly reach: Reach },
): Promise<SanitizationHeadRow[]> {
  const t = sanitizationRecords;
  return db
    .selectDistinctOn([t.nodeId], {
      nodeId: t.nodeId,
      hostname: t.hostname,
      recordId: t.recordId,
      sequence: t.sequence,
      recordSha256: t.recordSha256,
    })
    .from(t)
    .where(
      and(isWithin(page.reach, { site: siteOfRecord }), page.after === null ? undefined : gt(t.nodeId, page.after)),
    )
    .orderBy(asc(t.nodeId), desc(t.sequence))
    .limit(page.limit);
}
