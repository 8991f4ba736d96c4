import { createPublicKey } from "node:crypto";
import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { page } from "../../../shared/api/onboardings.ts";
import { SanitizationDetail, SanitizationHead, SanitizationSummary } from "../../../shared/api/sanitization.ts";
import { Hostname } from "../../../shared/api/values.ts";
import { NodeId } from "../../../shared/ids.ts";
import { DOCUMENT_FORMAT, SanitizationDocument } from "../../../shared/sanitization-document.ts";
import { AGENT_SIGNATURE_ALGORITHM } from "../../../shared/sanitization-format.ts";
import { RECORD_VERDICTS, readRecord, type SanitizationRecord } from "../../../shared/sanitization-record.ts";
import { readStatements } from "../../db/queries/authority-statements.ts";
import {
  type ListedSanitization,
  listSanitizationHeads,
  listSanitizationRows,
  readSanitizationRecord,
} from "../../db/queries/sanitization-records.ts";
import { readValidations } from "../../db/queries/sanitization-validations.ts";
import type { SanitizationRecordRow } from "../../db/schema/index.ts";
import type { Db } from "../../db/tx.ts";
import { sanitizationPage } from "../../ui/sanitization-page.ts";
import { PageQuery, pageOf, pageQuery, readBefore, readCursor } from "../page.ts";
import { readRoute } from "../route.ts";
import { toValidation } from "./sanitization-validations.ts";

const RecordParams = z.strictObject({ id: z.uuid() });
const tag = "sanitization";
const path = "/api/v1/admin/sanitization-records";

const toSummary = (row: Omit<ListedSanitization, "at">): z.input<typeof SanitizationSummary> => ({
  record_id: row.recordId,
  node_id: row.nodeId,
  hostname: row.hostname,
  sequence: row.sequence,
  tenant: row.tenant,
  allocation_id: row.allocationId,
  decommission_id: row.decommissionId,
  mode: row.mode,
  trust: row.trust,
  verdict: row.verdict,
  signed_by_agent: row.signedByAgent,
  record_sha256: row.recordSha256,
  order_key: row.orderKey,
  created_at: row.createdAt.toISOString(),
});

async function mustFindRecord(db: Db, id: string): Promise<SanitizationRecordRow> {
  const row = await readSanitizationRecord(db, id);
  if (row === null) throw new ApiError("not_found", `There is no sanitization record ${id}.`);
  return row;
}

function recordOf({ recordId, text }: SanitizationRecordRow): SanitizationRecord {
  const record = readRecord(text);
  if (typeof record === "string") throw new Error(`sanitization record ${recordId} cannot be read: ${record}`);
  return record;
}

/** Returns the hub's order key as PEM, with which readers can verify a sanitization record by tools other than Muster. */
const orderKeyPem = (key: string): string =>
  createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: key }, format: "jwk" })
    .export({ type: "spki", format: "pem" })
    .toString();

async function documentOf(db: Db, row: SanitizationRecordRow): Promise<SanitizationDocument> {
  const { text, agentSignature, agentCertificatePem, countersignature, hubSignature, orderKey } = row;
  return {
    format: DOCUMENT_FORMAT,
    text,
    agent:
      agentSignature === null || agentCertificatePem === null
        ? null
        : { algorithm: AGENT_SIGNATURE_ALGORITHM, signature: agentSignature, certificate_pem: agentCertificatePem },
    hub: {
      algorithm: "ed25519",
      text: countersignature,
      signature: hubSignature,
      public_key_pem: orderKeyPem(orderKey),
    },
    statements: (await readStatements(db)).map(({ statement }) => statement),
  };
}

const listRecords = readRoute({
  operationId: "listSanitizationRecords",
  method: "GET",
  path,
  tag,
  summary: "List sanitization records, newest first; records of deleted nodes stay",
  permission: "read",
  right: "read_allocations",
  place: "list",
  query: z.strictObject({
    ...pageQuery,
    node_id: NodeId.optional(),
    hostname: Hostname.optional(),
    tenant: z.string().min(1).max(256).optional(),
    allocation_id: z.uuid().optional(),
    verdict: z.enum(RECORD_VERDICTS).optional(),
  }),
  status: 200,
  response: page(SanitizationSummary),
  read: async ({ query, actor, deps }) => {
    const { node_id: nodeId, hostname, tenant, allocation_id: allocationId, verdict } = query;
    const rows = await listSanitizationRows(
      deps.db,
      { nodeId, hostname, tenant, allocationId, verdict, reach: actor },
      { before: readBefore(query.cursor), limit: query.limit + 1 },
    );
    return pageOf(rows, query.limit, ({ at, recordId }) => [at, recordId], toSummary);
  },
});

const listHeads = readRoute({
  operationId: "listSanitizationHeads",
  method: "GET",
  path: "/api/v1/admin/sanitization-heads",
  tag,
  summary: "List the newest sanitization record of each node, to keep elsewhere and to verify chains against later",
  permission: "read",
  right: "read_fleet",
  place: "list",
  query: PageQuery,
  status: 200,
  response: page(SanitizationHead),
  read: async ({ query, actor, deps }) => {
    const [after] = readCursor(query.cursor, z.tuple([NodeId])) ?? [];
    const rows = await listSanitizationHeads(deps.db, {
      after: after === undefined ? null : NodeId.parse(after),
      limit: query.limit + 1,
      reach: actor,
    });
    return pageOf(
      rows,
      query.limit,
      ({ nodeId }) => [nodeId],
      ({ nodeId, hostname, recordId, sequence, recordSha256 }) => ({
        node_id: nodeId,
        hostname,
        record_id: recordId,
        sequence,
        record_sha256: recordSha256,
      }),
    );
  },
});

const getRecord = readRoute({
  operationId: "getSanitizationRecord",
  method: "GET",
  path: `${path}/{id}`,
  tag,
  summary: "Read a sanitization record: what was cleaned, what was not, the verdict, and who has validated it",
  permission: "read",
  right: "read_allocations",
  place: { of: "record", param: "id" },
  params: RecordParams,
  status: 200,
  response: SanitizationDetail,
  read: async ({ params, deps }) => {
    const row = await mustFindRecord(deps.db, params.id);
    const validations = await readValidations(deps.db, params.id);
    return { ...toSummary(row), record: recordOf(row), validations: validations.map(toValidation) };
  },
});

const exportRecord = readRoute({
  operationId: "exportSanitizationRecord",
  method: "GET",
  path: `${path}/{id}/export`,
  tag,
  summary: "Export a sanitization record with its signatures, for the offline command verify-record",
  permission: "read",
  right: "read_allocations",
  place: { of: "record", param: "id" },
  params: RecordParams,
  status: 200,
  response: SanitizationDocument,
  read: async ({ params, deps }) => documentOf(deps.db, await mustFindRecord(deps.db, params.id)),
});

const printRecord = readRoute({
  operationId: "printSanitizationRecord",
  method: "GET",
  path: `${path}/{id}/print`,
  tag,
  summary: "Export a sanitization record as an HTML page for printing; the page itself is not signed",
  permission: "read",
  right: "read_allocations",
  place: { of: "record", param: "id" },
  params: RecordParams,
  status: 200,
  produces: "text/html",
  response: z.string(),
  read: async ({ params, deps }) => {
    const row = await mustFindRecord(deps.db, params.id);
    return sanitizationPage(recordOf(row), row, await readValidations(deps.db, params.id));
  },
});

export const sanitizationRecordRoutes = [listRecords, listHeads, getRecord, exportRecord, printRecord];
