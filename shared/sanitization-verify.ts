import { z } from "zod";
import { NodeId } from "./ids.ts";
import { canonicalJson } from "./json.ts";
import { Countersignature, SanitizationDocument } from "./sanitization-document.ts";
import { Sha256 } from "./sanitization-format.ts";
import { readRecord, type SanitizationRecord } from "./sanitization-record.ts";
import { judge } from "./sanitization-verdict.ts";
import { followTrust, sequenceOf, type Trust, type TrustChain, type VerifyText } from "./trust.ts";

/**
 * The cryptographic functions that the verifier of sanitization records needs. If the input of a cryptographic function is unreadable, the function
 * returns null or false.
 */
export interface RecordCrypto {
  readonly sha256: (text: string) => string;
  readonly certificate: (pem: string) => {
    readonly serial: string;
    readonly sha256: string;
    readonly publicKeySha256: string;
    /** Verifies an ECDSA signature in base64 with the certificate's key. */
    readonly verify: (text: string, signature: string) => boolean;
  } | null;
  /** Returns the Ed25519 key of a PEM text as base64url of the raw key. */
  readonly orderKey: (pem: string) => string | null;
  readonly verifyOrder: VerifyText;
}

export const RECORD_FAULTS = [
  "document_unreadable",
  "record_unreadable",
  "agent_signature_wrong",
  "agent_signature_missing",
  "agent_key_differs",
  "countersignature_wrong",
  "countersignature_differs",
  "order_key_unknown",
  "verdict_differs",
  "other_node",
  "record_missing",
  "record_repeated",
  "chain_broken",
  "follows_differs",
  "head_missing",
  "head_differs",
] as const;
export interface RecordFault {
  readonly code: (typeof RECORD_FAULTS)[number];
  readonly message: string;
}
const fault = (code: RecordFault["code"], message: string): RecordFault => ({ code, message });

export interface VerifiedRecord {
  readonly faults: readonly RecordFault[];
  /** `record` is null if the exported document, or the sanitization record in it, is unreadable. */
  readonly record: SanitizationRecord | null;
  readonly sha256: string | null;
  readonly orderKey: string | null;
}

/**
 * Returns the hub's order keys that a chain of signed statements connects with one trusted order key. A trusted order key does not vouch for earlier
 * keys, because anybody could make a statement that his own key came before the trusted key.
 */
function keysAfter(chain: TrustChain, trusted: string, verify: VerifyText): ReadonlySet<string> {
  const keys = new Set([trusted]);
  let trust: Trust = { sequence: sequenceOf(chain, trusted), current: { ca_pem: "", order_key: trusted }, next: null };
  for (const statement of chain) {
    const followed = followTrust(trust, [statement], verify);
    if (followed.fault !== null) break;
    trust = followed.trust;
    keys.add(trust.current.order_key);
  }
  return keys;
}

function agentFaults(document: SanitizationDocument, record: SanitizationRecord, crypto: RecordCrypto): RecordFault[] {
  const { agent } = document;
  if (agent === null || !record.signed_by_agent)
    return agent === null && !record.signed_by_agent
      ? []
      : [
          fault(
            "agent_signature_missing",
            record.signed_by_agent
              ? "The record says that an agent signed it, and the document has no signature of an agent."
              : "The record says that no agent signed it, and the document has a signature of an agent.",
          ),
        ];
  const certificate = crypto.certificate(agent.certificate_pem);
  if (certificate === null) return [fault("agent_key_differs", "The agent's certificate cannot be read.")];
  const { serial, publicKeySha256 } = certificate;
  const isNamed = record.agent?.certificate_serial === serial && record.agent.public_key_sha256 === publicKeySha256;
  return [
    ...(isNamed ? [] : [fault("agent_key_differs", "The agent's certificate is another one than the record names.")]),
    ...(certificate.verify(document.text, agent.signature)
      ? []
      : [fault("agent_signature_wrong", "The agent's signature does not belong to this text and certificate.")]),
  ];
}

function readCountersignature(text: string): Countersignature | null {
  try {
    const value: unknown = JSON.parse(text);
    return canonicalJson(value) === text ? (Countersignature.safeParse(value).data ?? null) : null;
  } catch {
    // A text that is not JSON cannot be a countersignature of the hub.
    return null;
  }
}

function hubFaults(
  document: SanitizationDocument,
  record: SanitizationRecord,
  signed: Countersignature,
  crypto: RecordCrypto,
): RecordFault[] {
  const { hub, agent } = document;
  const expected: Partial<Countersignature> = {
    record_id: record.record_id,
    node_id: record.node.id,
    sequence: record.sequence,
    record_sha256: crypto.sha256(document.text),
    agent_signature: agent?.signature ?? null,
    agent_certificate_sha256: agent === null ? null : (crypto.certificate(agent.certificate_pem)?.sha256 ?? null),
  };
  const other = (Object.keys(expected) as (keyof Countersignature)[]).find((name) => expected[name] !== signed[name]);
  return [
    ...(other === undefined
      ? []
      : [fault("countersignature_differs", `The hub signed another ${other} than this document has.`)]),
    ...(crypto.orderKey(hub.public_key_pem) === signed.order_key &&
    crypto.verifyOrder(signed.order_key, hub.text, urlSafe(hub.signature))
      ? []
      : [fault("countersignature_wrong", "The hub's signature does not belong to its text and key.")]),
  ];
}

/**
 * Signatures in an exported document are base64, which `openssl` reads. Task orders and statements about the hub's keys have signatures in base64url.
 */
const urlSafe = (text: string): string => text.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");

/** If the hub cut no cleaning step and no medium from a sanitization record, the verdict must follow from the record's facts. */
function verdictFaults(record: SanitizationRecord): RecordFault[] {
  if (record.cut.some(({ what }) => what === "steps" || what === "media")) return [];
  const { verdict } = judge(record);
  return verdict === record.verdict
    ? []
    : [fault("verdict_differs", `The record says ${record.verdict}, and its facts lead to ${verdict}.`)];
}

/**
 * Verifies one exported sanitization record without a hub. The argument `trusted` contains the hub's order keys that the reader of the record trusts.
 * Without a trusted order key, the verifier does not report whether the reader's own hub signed the record.
 */
export function verifyRecord(value: unknown, trusted: readonly string[], crypto: RecordCrypto): VerifiedRecord {
  const nothing = { record: null, sha256: null, orderKey: null };
  const parsed = SanitizationDocument.safeParse(value);
  if (!parsed.success) {
    const [first] = parsed.error.issues;
    const why = `${first?.path.join(".") ?? ""}: ${first?.message ?? "is not valid"}`;
    return { faults: [fault("document_unreadable", `This is no exported record: ${why}.`)], ...nothing };
  }
  const document = parsed.data;
  const record = readRecord(document.text);
  if (typeof record === "string")
    return { faults: [fault("record_unreadable", `The text is no record: ${record}.`)], ...nothing };
  const sha256 = crypto.sha256(document.text);
  const signed = readCountersignature(document.hub.text);
  if (signed === null)
    return {
      faults: [fault("countersignature_wrong", "The hub's text is no countersignature of a record.")],
      record,
      sha256,
      orderKey: null,
    };
  const known = trusted.some((key) => keysAfter(document.statements, key, crypto.verifyOrder).has(signed.order_key));
  const faults = [
    ...agentFaults(document, record, crypto),
    ...hubFaults(document, record, signed, crypto),
    ...verdictFaults(record),
    ...(known || trusted.length === 0
      ? []
      : [fault("order_key_unknown", `The order key ${signed.order_key} does not follow from a key that you trust.`)]),
  ];
  return { faults, record, sha256, orderKey: signed.order_key };
}

/** Sanitization records must form the chain of one node without a gap, from the lowest given sequence number on. */
export function verifyChain(verified: readonly VerifiedRecord[]): readonly RecordFault[] {
  const read = verified.flatMap(({ record, sha256 }) =>
    record === null || sha256 === null ? [] : [{ record, sha256 }],
  );
  const links = read.toSorted((a, b) => a.record.sequence - b.record.sequence);
  const linked = links.flatMap(({ record, sha256 }, index) => {
    const { sequence, previous_sha256, node } = record;
    const before = links[index - 1];
    if (before === undefined)
      return (sequence === 1) === (previous_sha256 === null)
        ? []
        : [fault("chain_broken", `Record ${sequence} does not fit the beginning of a chain.`)];
    if (before.record.node.id !== node.id)
      return [
        fault("other_node", `Record ${sequence} is about node ${node.id}, and not about ${before.record.node.id}.`),
      ];
    if (before.record.sequence === sequence)
      return before.sha256 === sha256
        ? []
        : [fault("record_repeated", `There are two records with number ${sequence}.`)];
    if (before.record.sequence !== sequence - 1)
      return [
        fault("record_missing", `Between record ${before.record.sequence} and record ${sequence} records are missing.`),
      ];
    return previous_sha256 === before.sha256
      ? []
      : [
          fault(
            "chain_broken",
            `Record ${sequence} was written after another record ${before.record.sequence} than this one.`,
          ),
        ];
  });
  return [...linked, ...links.flatMap(({ record }) => followFaults(record, links[0]?.record.sequence === 1, links))];
}

/**
 * The newest sanitization record of each node, in a list that somebody has kept outside the hub's database. The list of the nodes' newest
 * sanitization records must be complete, because its first page alone could lack the node whose record is missing.
 */
export const KeptHeads = z.object({
  items: z.array(z.object({ node_id: NodeId, sequence: z.int().min(1), record_sha256: Sha256 })),
  next_cursor: z.null(),
});
type KeptHead = z.output<typeof KeptHeads>["items"][number];

/**
 * Finds out whether sanitization records at the end of a node's chain are missing or were rewritten: the given records of the node must contain the
 * record that the kept list names for it.
 */
export function verifyHeads(verified: readonly VerifiedRecord[], heads: readonly KeptHead[]): readonly RecordFault[] {
  return heads.flatMap(({ node_id, sequence, record_sha256 }) => {
    const own = verified.filter(({ record }) => record?.node.id === node_id);
    if (own.length === 0) return [];
    const at = own.filter(({ record }) => record?.sequence === sequence);
    if (at.length === 0)
      return [
        fault(
          "head_missing",
          `The kept head of node ${node_id} is record ${sequence}, which is not among the given records.`,
        ),
      ];
    return at.every(({ sha256 }) => sha256 === record_sha256)
      ? []
      : [fault("head_differs", `Record ${sequence} of node ${node_id} is another one than the kept head.`)];
  });
}

/**
 * The sanitization record that another record names in `follows` must be an earlier record of the same allocation. If the given sanitization records
 * begin with the first one of the node's chain, a record that is named in `follows` must be among them.
 */
function followFaults(
  { sequence, follows, allocation }: SanitizationRecord,
  fromBeginning: boolean,
  links: readonly { readonly record: SanitizationRecord }[],
): RecordFault[] {
  if (follows === undefined) return [];
  const named = links.find(({ record }) => record.record_id === follows)?.record;
  const fits =
    named === undefined
      ? !fromBeginning
      : named.sequence < sequence && named.allocation !== null && named.allocation.id === allocation?.id;
  return fits
    ? []
    : [fault("follows_differs", `Record ${sequence} does not follow an earlier record of the same allocation.`)];
}
