import { z } from "zod";
import { Timestamp } from "./api/values.ts";
import { NodeId } from "./ids.ts";
import { canonicalJson } from "./json.ts";
import { AGENT_SIGNATURE_ALGORITHM, MOST_RECORD_BYTES, Sha256 } from "./sanitization-format.ts";
import { TrustChain } from "./trust.ts";

const Base64 = z.string().regex(/^[A-Za-z0-9+/]+={0,2}$/);

/** `format` names the format of the text that the hub countersigns, so that the signature is never valid for a text of another format. */
export const Countersignature = z.strictObject({
  format: z.literal("muster-sanitization-countersignature/1"),
  record_id: z.uuid(),
  node_id: NodeId,
  sequence: z.int().min(1),
  record_sha256: Sha256,
  /** The agent's signature in base64 and the SHA-256 of the agent's certificate in DER are null if no agent signed the sanitization record. */
  agent_signature: Base64.max(128).nullable(),
  agent_certificate_sha256: Sha256.nullable(),
  /** The public order key that verifies the countersignature, as base64url of the raw key, with the generation of that key (decision I6). */
  order_key: z.string().regex(/^[A-Za-z0-9_-]{43}$/),
  key_generation: z.int().min(1),
  countersigned_at: Timestamp,
});
export type Countersignature = z.output<typeof Countersignature>;
/**
 * The hub's countersignature states which sanitization record the hub accepted, when, and with which agent's signature. The hub adds its public order
 * key and the key's generation when it signs the countersignature.
 */
export type Countersigned = Omit<Countersignature, "format" | "order_key" | "key_generation">;

export const countersignatureText = (facts: Omit<Countersignature, "format">): string =>
  canonicalJson({ format: "muster-sanitization-countersignature/1", ...facts } satisfies Countersignature);

export const DOCUMENT_FORMAT = "muster-sanitization-document/1";

/** A sanitization record as the hub exports it: the exact signed texts, the signatures, and what a reader needs to verify the signatures. */
export const SanitizationDocument = z.strictObject({
  format: z.literal(DOCUMENT_FORMAT),
  text: z.string().min(2).max(MOST_RECORD_BYTES),
  /** `agent_signature` is null if no agent signed the sanitization record. */
  agent: z
    .strictObject({
      algorithm: z.literal(AGENT_SIGNATURE_ALGORITHM),
      signature: Base64.max(128),
      certificate_pem: z.string().max(4_096),
    })
    .nullable(),
  hub: z.strictObject({
    algorithm: z.literal("ed25519"),
    text: z.string().min(2).max(4_096),
    signature: Base64.max(128),
    public_key_pem: z.string().max(256),
  }),
  /** The `statements` show that the order keys belong together: in each of them, an order key of the hub signs the next order key. */
  statements: TrustChain,
});
export type SanitizationDocument = z.output<typeof SanitizationDocument>;
