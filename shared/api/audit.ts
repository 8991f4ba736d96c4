import { z } from "zod";
import { AUDIT_FAULTS, AUDIT_OUTCOMES, SealedEntry, SIGN_IN_WAYS } from "../audit-chain.ts";
import { SiteId } from "../ids.ts";
import { INT4_MAX } from "../int4.ts";
import { countsFailures } from "./extensions.ts";
import { Timestamp } from "./values.ts";

const { format: _format, sequence, occurred_at: _occurredAt, ...entry } = SealedEntry.shape;

/** One entry of the audit. The fields of the hash chain are null until the hub has sealed the audit entry, which takes about a second. */
export const AuditLogEntry = z.strictObject({
  /** The id of the audit entry in the database, by which the list of audit entries is ordered. */
  id: z.string(),
  ...entry,
  occurred_at: Timestamp,
  via: z.enum(SIGN_IN_WAYS).nullable(),
  outcome: z.enum(AUDIT_OUTCOMES),
  sequence: sequence.nullable(),
  content_sha256: entry.content_sha256.nullable(),
  previous_sha256: entry.previous_sha256.nullable(),
  entry_sha256: entry.entry_sha256.nullable(),
});
export type AuditLogEntry = z.output<typeof AuditLogEntry>;

const text = (most: number) => z.string().min(1).max(most);

/** The filters of the list of audit entries. */
export const auditFilter = {
  actor: text(200).optional(),
  action: text(100).optional(),
  /** The part of an audit entry's target before its first slash, for example `nodes`. */
  object_kind: text(100).optional(),
  object_id: text(200).optional(),
  site_id: SiteId.optional(),
  outcome: z.enum(AUDIT_OUTCOMES).optional(),
  since: Timestamp.optional(),
  until: Timestamp.optional(),
  request_id: text(64).optional(),
  address: text(64).optional(),
};

const MOST_VERIFIED = 50_000;
export const AuditVerifyQuery = z.strictObject({
  after: z.coerce.number().int().min(0).max(INT4_MAX).default(0),
  limit: z.coerce.number().int().min(1).max(MOST_VERIFIED).default(20_000),
  /** An end (head) of the audit's hash chain that the caller recorded earlier, as `sequence:sha256`. */
  head: z
    .string()
    .regex(/^[1-9]\d{0,14}:[0-9a-f]{64}$/, "must be sequence:sha256, as a verification shows it")
    .optional(),
});

const ChainPoint = z.strictObject({ sequence: z.int().min(0), entry_sha256: z.string() });

/** The result of the verification of a part of the audit's hash chain. */
export const AuditVerification = z.strictObject({
  /** How many audit entries the hub has read and checked. */
  entries: z.int(),
  /** The last audit entry in the verified part of the audit's hash chain. */
  through: ChainPoint,
  /** True if the verified part reaches the end of the audit's hash chain; otherwise the next part to verify begins after `through.sequence`. */
  complete: z.boolean(),
  /** The number of audit entries that are not in the hash chain yet; null unless the verified part reaches the end of the chain. */
  unsealed: z.int().nullable(),
  /**
   * The recorded ends (heads) of the audit's hash chain with which the hub compared the chain: those in its state folder, and the one in the request.
   */
  kept_heads: z.array(z.strictObject({ ...ChainPoint.shape, kept_in: z.string() })),
  fault_count: z.int().meta(countsFailures),
  faults: z.array(z.strictObject({ code: z.enum(AUDIT_FAULTS), sequence: z.int(), message: z.string() })),
});
export type AuditVerification = z.output<typeof AuditVerification>;
