import { z } from "zod";
import { AuditLogEntry, AuditVerification, AuditVerifyQuery, auditFilter } from "../../../shared/api/audit.ts";
import { ApiError } from "../../../shared/api/errors.ts";
import { page } from "../../../shared/api/onboardings.ts";
import { verifyPart } from "../../audit/verify.ts";
import { toContent } from "../../db/queries/audit-chain.ts";
import { type ListedAudit, listAuditRows } from "../../db/queries/audit-logs.ts";
import { pageOf, pageQuery, readCursor } from "../page.ts";
import { readRoute } from "../route.ts";

const tag = "audit";
const path = "/api/v1/admin/audit-logs";

const toEntry = (row: ListedAudit): z.input<typeof AuditLogEntry> => ({
  id: String(row.id),
  sequence: row.sequence,
  occurred_at: row.occurredAt,
  ...toContent(row),
  via: row.via,
  outcome: row.outcome,
  site_id: row.siteId,
  content_sha256: row.contentSha256,
  previous_sha256: row.previousSha256,
  entry_sha256: row.entrySha256,
});

const Before = z.tuple([z.string().regex(/^\d{1,18}$/)]);

const list = readRoute({
  operationId: "listAuditLogs",
  method: "GET",
  path,
  tag,
  summary: "List who did what, from where and with which outcome, newest first",
  permission: "read",
  right: "read_audit",
  place: "list",
  query: z.strictObject({ ...pageQuery, ...auditFilter }),
  status: 200,
  response: page(AuditLogEntry),
  read: async ({ query, actor, deps }) => {
    if (query.object_id !== undefined && query.object_kind === undefined)
      throw new ApiError("validation_failed", "The filter object_id needs object_kind, for example nodes.", {
        errors: [{ pointer: "/object_kind", message: "is missing" }],
      });
    const [before] = readCursor(query.cursor, Before) ?? [];
    const filter = {
      actor: query.actor,
      action: query.action,
      objectKind: query.object_kind,
      objectId: query.object_id,
      siteId: query.site_id,
      outcome: query.outcome,
      since: query.since,
      until: query.until,
      requestId: query.request_id,
      address: query.address,
    };
    const at = { before: before === undefined ? null : BigInt(before), reach: actor, limit: query.limit + 1 };
    return pageOf(await listAuditRows(deps.db, filter, at), query.limit, (row) => [String(row.id)], toEntry);
  },
});

const verify = readRoute({
  operationId: "verifyAuditLogs",
  method: "GET",
  path: `${path}/verify`,
  tag,
  summary: "Verify a part of the hash chain over the audit entries, and its end against the kept heads",
  permission: "read",
  right: "read_audit",
  place: "hub",
  query: AuditVerifyQuery,
  status: 200,
  response: AuditVerification,
  read: async ({ query, deps }) => {
    const kept = (await deps.auditHeads()).map(({ file, ...head }) => ({ ...head, kept_in: file }));
    const [sequence, hash = ""] = query.head?.split(":") ?? [];
    const given =
      sequence === undefined ? [] : [{ sequence: Number(sequence), entry_sha256: hash, kept_in: "request" }];
    const heads = [...kept, ...given];
    const { through, read, complete, faults, faultCount, unsealed } = await verifyPart(deps.inTx, {
      after: query.after,
      limit: query.limit,
      heads,
    });
    return { entries: read, through, complete, unsealed, kept_heads: heads, fault_count: faultCount, faults };
  },
});

export const auditLogRoutes = [list, verify];
