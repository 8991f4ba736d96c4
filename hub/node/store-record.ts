import { createHash, verify, X509Certificate } from "node:crypto";
import type { TaskId } from "../../shared/ids.ts";
import type { Countersigned } from "../../shared/sanitization-document.ts";
import { readRecord, type SanitizationRecord } from "../../shared/sanitization-record.ts";
import type { TaskResult } from "../../shared/tasks/index.ts";
import { databaseNow } from "../db/queries/clock.ts";
import {
  addSanitizationRecord,
  isIssuedTo,
  lockSanitizationChain,
  readSanitizationRecord,
} from "../db/queries/sanitization-records.ts";
import type { SanitizationRecordRow } from "../db/schema/index.ts";
import type { Tx } from "../db/tx.ts";
import { sha256Of } from "./prepare-record.ts";

type AgentSignature = TaskResult<"node.sign_record">;

/**
 * Signs facts about a sanitization record with the order key, with which the hub also signs tasks. Throws `SecretError` while the secret store has
 * not provided the order key.
 */
export type Countersign = (facts: Countersigned) => {
  readonly text: string;
  readonly signature: string;
  readonly orderKey: string;
};

/**
 * The stored sanitization record, or the reason why the hub did not store it. After `chain_moved` or `tasks_unconfirmed`, the caller builds the
 * sanitization record again. After `tasks_unconfirmed`, the new sanitization record lists the tasks in `tasks` as unconfirmed. After
 * `signature_wrong`, the caller treats the sanitization record as one that the agent has not signed.
 */
export type StoredRecord =
  | { readonly stored: SanitizationRecordRow }
  | { readonly refused: "chain_moved"; readonly message: string }
  | { readonly refused: "tasks_unconfirmed"; readonly message: string; readonly tasks: readonly TaskId[] }
  | { readonly refused: "signature_wrong"; readonly message: string };

interface ReadCertificate {
  readonly serial: string;
  readonly publicKeySha256: string;
  readonly sha256: string;
  readonly publicKey: X509Certificate["publicKey"];
}

function readCertificate(pem: string): ReadCertificate | null {
  try {
    const certificate = new X509Certificate(pem);
    const spki = certificate.publicKey.export({ type: "spki", format: "der" });
    return {
      serial: certificate.serialNumber.toLowerCase().replace(/^0+(?=.)/, ""),
      publicKeySha256: createHash("sha256").update(spki).digest("hex"),
      sha256: createHash("sha256").update(certificate.raw).digest("hex"),
      publicKey: certificate.publicKey,
    };
  } catch {
    // A certificate that the hub cannot read is not a certificate that the hub has issued.
    return null;
  }
}

/**
 * Checks that the agent that a sanitization record names signed exactly `text`, with a certificate that the hub issued to the node. `checkSignature`
 * returns the agent's certificate, or a text that says why the signature is wrong.
 */
async function checkSignature(
  tx: Tx,
  record: SanitizationRecord,
  text: string,
  signed: AgentSignature,
): Promise<ReadCertificate | string> {
  const certificate = readCertificate(signed.certificate_pem);
  if (certificate === null) return "the agent sent no certificate that can be read";
  const { serial, publicKeySha256, publicKey } = certificate;
  if (record.agent?.certificate_serial !== serial || record.agent.public_key_sha256 !== publicKeySha256)
    return "the agent signed with another certificate than the record names";
  const { id, generation } = record.node;
  if (!(await isIssuedTo(tx, id, { serial, publicKeySha256, generation })))
    return "the hub has not issued the agent's certificate to this node, or has revoked it";
  if (!verify("sha256", Buffer.from(text), publicKey, Buffer.from(signed.signature, "base64")))
    return "the agent's signature does not belong to the record";
  return certificate;
}

/**
 * Verifies the agent's signature, countersigns the sanitization record, and adds the record to the node's chain of records. If `signed` is null, the
 * record must say that no agent signed the record. A repeated call of `storeRecord` with the same sanitization record returns the row that the first
 * call stored.
 */
export async function storeRecord(
  tx: Tx,
  { text, signed, countersign }: { text: string; signed: AgentSignature | null; countersign: Countersign },
): Promise<StoredRecord> {
  const record = readRecord(text);
  if (typeof record === "string") throw new Error(`a sanitization record cannot be stored: ${record}`);
  const last = await lockSanitizationChain(tx, record.node.id);
  const recordSha256 = sha256Of(text);
  const stored = await readSanitizationRecord(tx, record.record_id);
  if (stored?.recordSha256 === recordSha256) return { stored };
  if (
    stored !== null ||
    record.sequence !== (last?.sequence ?? 0) + 1 ||
    record.previous_sha256 !== (last?.recordSha256 ?? null)
  )
    return {
      refused: "chain_moved",
      message: `The node has another last sanitization record than record ${record.record_id} names.`,
    };
  if ((signed === null) === record.signed_by_agent)
    throw new Error(`sanitization record ${record.record_id} and its signature do not fit each other`);
  const certificate = signed === null ? null : await checkSignature(tx, record, text, signed);
  if (typeof certificate === "string")
    return { refused: "signature_wrong", message: `The record was not accepted: ${certificate}.` };
  const unnamed = (signed?.unknown_tasks ?? []).filter((id) => !record.unconfirmed_tasks.includes(id));
  if (unnamed.length > 0)
    return {
      refused: "tasks_unconfirmed",
      message: "The agent's journal does not have the results of some tasks, and the record does not say so.",
      tasks: unnamed,
    };
  const hub = countersign({
    record_id: record.record_id,
    node_id: record.node.id,
    sequence: record.sequence,
    record_sha256: recordSha256,
    agent_signature: signed?.signature ?? null,
    agent_certificate_sha256: certificate?.sha256 ?? null,
    countersigned_at: (await databaseNow(tx)).toISOString(),
  });
  return { stored: await addSanitizationRecord(tx, rowOf(record, { text, recordSha256, signed, hub })) };
}

function rowOf(
  record: SanitizationRecord,
  about: { text: string; recordSha256: string; signed: AgentSignature | null; hub: ReturnType<Countersign> },
): Parameters<typeof addSanitizationRecord>[1] {
  const { text, recordSha256, signed, hub } = about;
  return {
    recordId: record.record_id,
    nodeId: record.node.id,
    sequence: record.sequence,
    hostname: record.node.hostname,
    allocationId: record.allocation?.id ?? null,
    tenant: record.allocation?.tenant ?? null,
    decommissionId: record.operation.decommission_id,
    mode: record.operation.mode,
    trust: record.trust,
    verdict: record.verdict,
    text,
    recordSha256,
    signedByAgent: signed !== null,
    agentSignature: signed?.signature ?? null,
    agentCertificatePem: signed?.certificate_pem ?? null,
    countersignature: hub.text,
    hubSignature: hub.signature,
    orderKey: hub.orderKey,
  };
}
