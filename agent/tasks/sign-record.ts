import { createHash, createPrivateKey, createPublicKey, sign, X509Certificate } from "node:crypto";
import type { NodeId, TaskId } from "../../shared/ids.ts";
import { AGENT_SIGNATURE_ALGORITHM, readSignable, type SignableRecord } from "../../shared/sanitization-format.ts";
import type { TaskHandlers } from "../../shared/tasks/index.ts";
import { VERSION } from "../../shared/version.ts";
import type { System } from "../system/system.ts";

type Handler = TaskHandlers["node.sign_record"];
type Reply = Awaited<ReturnType<Handler>>;
type Refusal = Exclude<Reply, { ok: true }>;

export interface RecordEvidence {
  /** Reads the agent's identity from disk, because a certificate renewal may have replaced it since the agent started. */
  readonly identity: () => Promise<{
    readonly nodeId: NodeId;
    readonly tls: { readonly cert: string; readonly key: string };
  } | null>;
  readonly resultOf: (taskId: TaskId) => { readonly epoch: number; readonly sha256: string } | null;
}

const refuse = (error: Refusal["error"], message: string): Refusal => ({ ok: false, error, message });

/**
 * Signs a sanitization record that names the agent's node and certificate and the host's present boot (architecture 14.5). The agent refuses a
 * sanitization record with a task result that differs from its journal.
 */
export const signRecord =
  (system: System, evidence: RecordEvidence): Handler =>
  async ({ text }) => {
    const record = readSignable(text);
    if (typeof record === "string")
      return refuse("malformed", `The record cannot be signed: ${record}. Check that hub and agent have one version.`);
    const identity = await evidence.identity();
    if (identity === null || record.node.id !== identity.nodeId)
      return refuse(
        "foreign_node",
        `The record is about node ${record.node.id}, and this agent is node ${identity?.nodeId ?? "without an identity"}.`,
      );
    const { cert, key } = identity.tls;
    const own = describe(cert, await system.bootId());
    const other = differing(record.agent, own);
    if (other !== undefined)
      return refuse(
        "agent_differs",
        `The record names another ${other} of this agent than ${own[other]}. The hub must write the record again.`,
      );
    const { differs, unknown } = compare(record, evidence);
    if (differs !== null)
      return refuse(
        "result_differs",
        `The record has another result of task ${differs} than this agent reported. Look into the hub's database and this host.`,
      );
    return {
      ok: true,
      result: {
        signature: sign("sha256", Buffer.from(text), createPrivateKey(key)).toString("base64"),
        algorithm: AGENT_SIGNATURE_ALGORITHM,
        certificate_serial: own.certificate_serial,
        certificate_pem: cert,
        unknown_tasks: unknown,
      },
    };
  };

type Agent = SignableRecord["agent"];

function describe(certificatePem: string, bootId: string): Agent {
  const certificate = new X509Certificate(certificatePem);
  const spki = createPublicKey(certificatePem).export({ type: "spki", format: "der" });
  return {
    version: VERSION,
    boot_id: bootId,
    certificate_serial: certificate.serialNumber.toLowerCase().replace(/^0+(?=.)/, ""),
    public_key_sha256: createHash("sha256").update(spki).digest("hex"),
  };
}

const differing = (named: Agent, own: Agent): keyof Agent | undefined =>
  (Object.keys(own) as (keyof Agent)[]).find((member) => named[member] !== own[member]);

/** A sanitization record can claim nothing from a task without a result, so the agent compares only the tasks with a result. */
function compare(
  record: SignableRecord,
  { resultOf }: RecordEvidence,
): { readonly differs: TaskId | null; readonly unknown: TaskId[] } {
  const unknown: TaskId[] = [];
  for (const { task_id, epoch, result_sha256 } of record.tasks) {
    if (result_sha256 === null) continue;
    const own = resultOf(task_id);
    if (own === null) unknown.push(task_id);
    else if (own.epoch !== epoch || own.sha256 !== result_sha256) return { differs: task_id, unknown };
  }
  return { differs: null, unknown };
}
