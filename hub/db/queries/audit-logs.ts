import { createHash } from "node:crypto";
import { type AuditContent, type AuditOutcome, contentText, type SignInWay } from "../../../shared/audit-chain.ts";
import type { SiteId } from "../../../shared/ids.ts";
import type { Json } from "../../../shared/json.ts";
import { and, desc, eq, gte, lt, type SQL, sql } from "../orm.ts";
import { auditLogs, auditSeals } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { siteOfTarget } from "./audit-sites.ts";
import { isWithin, type Reach } from "./reach.ts";

/**
 * Who made the request that an audit entry records, and from where. An audit entry about an act of the hub itself has the sign-in method `none` and
 * no address.
 */
export interface AuditSource {
  readonly actor: string;
  readonly role: string;
  readonly via?: SignInWay;
  readonly address?: string | null;
  readonly requestId: string | null;
}

export interface AuditEntry extends AuditSource {
  readonly action: string;
  readonly target: string;
  readonly reason: string | null;
  /** Details never contain a secret. */
  readonly details: Readonly<Record<string, unknown>>;
  readonly outcome?: AuditOutcome;
  readonly errorCode?: string | null;
  /** The site of the audited object, if the caller knows it; otherwise the database finds the object's site. */
  readonly siteId?: SiteId | null;
}

export const sha256Hex = (text: string): string => createHash("sha256").update(text).digest("hex");

export const recordAudit = (tx: Tx, entry: AuditEntry): Promise<void> => recordAudits(tx, [entry]);

export async function recordAudits(tx: Tx, entries: readonly AuditEntry[]): Promise<void> {
  if (entries.length > 0) await tx.insert(auditLogs).values(entries.map(rowOf));
}

function rowOf(entry: AuditEntry) {
  const { actor, role, via = "none", address = null, requestId, action, target, reason } = entry;
  // The stored details of an audit entry are the JSON that its hash covers, in which members that are undefined are missing.
  const details = JSON.parse(JSON.stringify(entry.details)) as Json;
  const content = { actor, role, via, address, action, target, reason, details };
  const outcome = entry.outcome ?? "done";
  const errorCode = entry.errorCode ?? null;
  const hashed: AuditContent = { ...content, request_id: requestId, outcome, error_code: errorCode };
  return {
    ...content,
    requestId,
    outcome,
    errorCode,
    siteId: entry.siteId ?? siteOfTarget(target),
    contentSha256: sha256Hex(contentText(hashed)),
  };
}

export interface AuditFilter {
  readonly actor?: string | undefined;
  readonly action?: string | undefined;
  readonly objectKind?: string | undefined;
  readonly objectId?: string | undefined;
  readonly siteId?: SiteId | undefined;
  readonly outcome?: AuditOutcome | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  readonly requestId?: string | undefined;
  readonly address?: string | undefined;
}

/** The time of an audit entry as text with microseconds, exactly as the hash of the entry covers it. */
const occurredText = sql<string>`to_char(${auditLogs.occurredAt} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;

export const AUDIT_FIELDS = {
  id: auditLogs.id,
  actor: auditLogs.actor,
  via: auditLogs.via,
  role: auditLogs.role,
  address: auditLogs.address,
  requestId: auditLogs.requestId,
  action: auditLogs.action,
  target: auditLogs.target,
  siteId: auditLogs.siteId,
  outcome: auditLogs.outcome,
  errorCode: auditLogs.errorCode,
  reason: auditLogs.reason,
  details: sql<Json>`${auditLogs.details}`,
  contentSha256: auditLogs.contentSha256,
  occurredAt: occurredText,
};
export const AUDIT_PLACE = {
  sequence: auditSeals.sequence,
  previousSha256: auditSeals.previousSha256,
  entrySha256: auditSeals.entrySha256,
};

export const listAuditRows = (
  db: Db,
  filter: AuditFilter,
  page: { readonly before: bigint | null; readonly reach: Reach; readonly limit: number },
) =>
  db
    .select({ ...AUDIT_FIELDS, ...AUDIT_PLACE })
    .from(auditLogs)
    .leftJoin(auditSeals, eq(auditSeals.auditId, auditLogs.id))
    .where(
      and(
        ...conditionsOf(filter),
        isWithin(page.reach, { site: auditLogs.siteId }),
        page.before === null ? undefined : lt(auditLogs.id, page.before),
      ),
    )
    .orderBy(desc(auditLogs.id))
    .limit(page.limit);
export type ListedAudit = Awaited<ReturnType<typeof listAuditRows>>[number];

function conditionsOf(filter: AuditFilter): (SQL | undefined)[] {
  const t = auditLogs;
  const { actor, action, objectKind, objectId, siteId, outcome, since, until, requestId, address } = filter;
  const target = objectKind !== undefined && objectId !== undefined ? `${objectKind}/${objectId}` : undefined;
  return [
    actor === undefined ? undefined : eq(t.actor, actor),
    action === undefined ? undefined : eq(t.action, action),
    target === undefined ? undefined : eq(t.target, target),
    objectKind === undefined || target !== undefined ? undefined : eq(t.objectKind, objectKind),
    siteId === undefined ? undefined : eq(t.siteId, siteId),
    outcome === undefined ? undefined : eq(t.outcome, outcome),
    since === undefined ? undefined : gte(t.occurredAt, sql`${since}::timestamptz`),
    until === undefined ? undefined : lt(t.occurredAt, sql`${until}::timestamptz`),
    requestId === undefined ? undefined : eq(t.requestId, requestId),
    address === undefined ? undefined : eq(t.address, address),
  ];
}
