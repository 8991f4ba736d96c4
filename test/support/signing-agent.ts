/** Simulated agents that sign sanitization records with the key of a real certificate. */
import { createHash, createPrivateKey, randomBytes, sign, X509Certificate } from "node:crypto";
import { and, eq, isNotNull } from "../../hub/db/orm.ts";
import { nodeCertificates, nodes } from "../../hub/db/schema/index.ts";
import type { Db, Tx } from "../../hub/db/tx.ts";
import { KEY_ALGORITHM, SIGNING_ALGORITHM, serialOf, x509 } from "../../hub/gateway/x509.ts";
import type { NodeId } from "../../shared/ids.ts";
import { AGENT_SIGNATURE_ALGORITHM } from "../../shared/sanitization-format.ts";
import type { TaskInput, TaskResult } from "../../shared/tasks/index.ts";

interface SigningKey {
  readonly pem: string;
  readonly key: ReturnType<typeof createPrivateKey>;
}
const KEYS = new Map<NodeId, SigningKey>();

/** Stores a certificate for the node, as the hub does after an enrollment and the agent's first connection. */
export async function certify(tx: Tx, nodeId: NodeId): Promise<void> {
  const keys = await crypto.subtle.generateKey(KEY_ALGORITHM, true, ["sign", "verify"]);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: `01${randomBytes(8).toString("hex")}`,
    name: `CN=${nodeId}`,
    notBefore: new Date(Date.now() - 60_000),
    notAfter: new Date(Date.now() + 86_400_000),
    signingAlgorithm: SIGNING_ALGORITHM,
    keys,
  });
  const pem = certificate.toString("pem");
  const der = Buffer.from(await crypto.subtle.exportKey("pkcs8", keys.privateKey));
  KEYS.set(nodeId, { pem, key: createPrivateKey({ key: der, format: "der", type: "pkcs8" }) });
  const read = new X509Certificate(pem);
  const [node] = await tx.select({ generation: nodes.generation }).from(nodes).where(eq(nodes.id, nodeId));
  await tx.insert(nodeCertificates).values({
    serial: serialOf(read.serialNumber),
    nodeId,
    generation: node?.generation ?? 0,
    publicKeySha256: createHash("sha256")
      .update(read.publicKey.export({ type: "spki", format: "der" }))
      .digest("hex"),
    notBefore: new Date(read.validFrom),
    notAfter: new Date(read.validTo),
    firstUsedAt: new Date(),
  });
}

/** True if the simulated agent has a certificate of the given generation of the node, and has used the certificate. */
export async function hasUsedCertificate(db: Db, nodeId: NodeId, generation: number): Promise<boolean> {
  const own = await db
    .select({ serial: nodeCertificates.serial })
    .from(nodeCertificates)
    .where(
      and(
        eq(nodeCertificates.nodeId, nodeId),
        eq(nodeCertificates.generation, generation),
        isNotNull(nodeCertificates.firstUsedAt),
      ),
    );
  return own.length > 0;
}

export function signed(nodeId: NodeId, { text }: TaskInput<"node.sign_record">): TaskResult<"node.sign_record"> {
  const own = KEYS.get(nodeId);
  if (own === undefined) throw new Error(`node ${nodeId} has no certificate to sign with`);
  return {
    signature: sign("sha256", Buffer.from(text), own.key).toString("base64"),
    algorithm: AGENT_SIGNATURE_ALGORITHM,
    certificate_serial: serialOf(new X509Certificate(own.pem).serialNumber),
    certificate_pem: own.pem,
    unknown_tasks: [],
  };
}
