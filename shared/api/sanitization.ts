import { z } from "zod";
import { NodeId, WorkflowId } from "../ids.ts";
import { Sha256 } from "../sanitization-format.ts";
import { RECORD_VERDICTS, SanitizationRecord, TRUST_LEVELS } from "../sanitization-record.ts";
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

/** The newest sanitization record of one node. A kept list of heads shows later whether records at the end of a chain are missing. */
export const SanitizationHead = z.strictObject({
  node_id: NodeId,
  hostname: z.string(),
  record_id: z.uuid(),
  sequence: z.int().min(1),
  record_sha256: Sha256,
});
export type SanitizationHead = z.output<typeof SanitizationHead>;

export const SanitizationDetail = z.strictObject({ ...SanitizationSummary.shape, record: SanitizationRecord });
