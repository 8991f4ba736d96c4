import { z } from "zod";
import { NodeId, WorkflowId } from "../ids.ts";
import { Sha256 } from "../sanitization-format.ts";
import { RECORD_VERDICTS, SanitizationRecord, TRUST_LEVELS } from "../sanitization-record.ts";
import { Reason } from "./decommissions.ts";
import { API_ROLES } from "./roles.ts";
import { Timestamp } from "./values.ts";

/** The API's list of sanitization records shows some fields; `getSanitizationRecord` and the export show the whole sanitization record. */
export const SanitizationSummary = z.strictObject({
  record_id: z.uuid(),
  node_id: NodeId,
  hostname: z.string(),
  /** A node's sanitization records form a chain, in which each has a number, from 1 on. */
  sequence: z.int(),
  tenant: z.string().nullable(),
  allocation_id: z.uuid().nullable(),
  decommission_id: WorkflowId,
  mode: z.string(),
  trust: z.enum(TRUST_LEVELS),
  verdict: z.enum(RECORD_VERDICTS),
  signed_by_agent: z.boolean(),
  record_sha256: z.string(),
  order_key: z.string(),
  created_at: Timestamp,
});
export type SanitizationSummary = z.output<typeof SanitizationSummary>;

/**
 * The newest sanitization record of one node. A list of the newest records of all nodes, kept elsewhere, shows later whether records at the end of a
 * node's chain are missing.
 */
export const SanitizationHead = z.strictObject({
  node_id: NodeId,
  hostname: z.string(),
  record_id: z.uuid(),
  sequence: z.int().min(1),
  record_sha256: Sha256,
});
export type SanitizationHead = z.output<typeof SanitizationHead>;

export const VALIDATION_RESULTS = ["accepted", "rejected"] as const;

/**
 * The finding of a person who validated a sanitization record. A person's validation is not a part of the sanitization record, and changes neither
 * the record nor its verdict.
 */
export const SanitizationValidation = z.strictObject({
  id: z.uuid(),
  record_id: z.uuid(),
  record_sha256: Sha256,
  validated_by: z.string(),
  role: z.enum(API_ROLES),
  /** False if the caller's credential may be in the hands of anybody, e.g. the first admin token or the credential of a machine. */
  is_person: z.boolean(),
  title: z.string().nullable(),
  result: z.enum(VALIDATION_RESULTS),
  reason: z.string(),
  validated_at: Timestamp,
});
export type SanitizationValidation = z.output<typeof SanitizationValidation>;

export const SanitizationValidationCreate = z.strictObject({
  result: z.enum(VALIDATION_RESULTS).describe("Whether you accept the record as evidence of the cleaning"),
  title: z.string().trim().min(1).max(100).describe("Your job title, as a certificate shall name it").optional(),
  reason: Reason.describe("What you looked at, and why you accept or reject the record"),
});

export const SanitizationDetail = z.strictObject({
  ...SanitizationSummary.shape,
  record: SanitizationRecord,
  validations: z.array(SanitizationValidation),
});
