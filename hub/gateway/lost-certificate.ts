import type { X509Certificate } from "node:crypto";
import type { NodeId } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import type { Hello } from "../../shared/protocol/frames.ts";
import { readLostTimes } from "../db/queries/database-restores.ts";
import { areTokensSince, markTokensUsed } from "../db/queries/enrollment-tokens.ts";
import {
  beginUse,
  type FoundCertificate,
  type KnownCertificate,
  keepFoundCertificate,
  readCertificate,
  readOtherCertificates,
} from "../db/queries/node-certificates.ts";
import { readConditions } from "../db/queries/node-conditions.ts";
import { recordNodeEvent } from "../db/queries/node-events.ts";
import { readIdentityBlock } from "../db/queries/node-identity-bars.ts";
import { lockNode } from "../db/queries/nodes.ts";
import { waitKey, wakeWorkflows } from "../db/queries/workflow-wakes.ts";
import type { Node } from "../db/schema/index.ts";
import type { Db, InTx, Tx } from "../db/tx.ts";
import { enrollAdoptedNode } from "../node/adopted-host.ts";
import { writeConnected } from "../node/conditions.ts";
import { enrollAgain } from "../node/enroll-again.ts";
import { enrollExternalNode } from "../node/external/admit-node.ts";
import { type LostVerdict, lostVerdict } from "../node/lost-certificate.ts";
import { enrollManualNode } from "../node/manual-mode.ts";
import { authorityOf, type CertificateAuthority, keySha256, NODE_BACKDATE_MS } from "./certificate-authority.ts";
import { serialOf } from "./x509.ts";

interface LostDependencies {
  readonly db: Db;
  readonly inTx: InTx;
  readonly ca: CertificateAuthority;
  readonly log: Log;
}

/** A certificate that the hub issued after the backup of which the database was restored, and that the database does not have. */
export interface LostCertificate {
  readonly certificate: Omit<FoundCertificate, "generation">;
  readonly restoredAt: Date;
  readonly byCaInForce: boolean;
}

type Found = KnownCertificate & { readonly lost?: LostCertificate };

/** The largest difference between the hub's clock and the database's clock that the hub tolerates. */
const SKEW_MS = 5 * 60_000;

/**
 * Returns the database row of a certificate that the hub issued between a backup and its restore, or the content of a row to be stored later; null if
 * the hub still does not know the certificate. The caller of `findLostCertificate` has already checked that the hub's CA issued the certificate for
 * the node. The row of an accepted certificate is stored later by `fitsGeneration`, because only the agent's hello or renewal says to which
 * generation of the node the certificate belongs.
 */
export async function findLostCertificate(
  { db, inTx, ca, log }: LostDependencies,
  nodeId: NodeId,
  certificate: X509Certificate,
): Promise<Found | null> {
  const lost = await inLostTime(db, ca, nodeId, certificate);
  if (lost === null) return null;
  const { serial } = lost.certificate;
  const found = await inTx(async (tx): Promise<Found | LostVerdict> => {
    const node = await lockNode(tx, nodeId);
    const verdict = await judge(tx, node, lost);
    if (node === null || verdict === "unknown") return "unknown";
    if (verdict === "accepted") return { node, certificate: asRow(lost, node), replacedSeenForMs: null, lost };
    await keep(tx, node, lost, verdict);
    return verdict;
  });
  if (typeof found !== "string") return found;
  if (found === "unknown") return null;
  log.info("a certificate from before the restore is known again", { node_id: nodeId, serial, verdict: found });
  return readCertificate(db, serial);
}

/**
 * True if the agent's hello or renewal names the node and the generation of the client certificate. If an agent with a certificate from between a
 * backup and its restore names another generation than the restored node has, the hub refuses the certificate, and a condition of the node says that
 * its host must enroll again.
 */
export async function fitsGeneration(
  { inTx, log }: Pick<LostDependencies, "inTx" | "log">,
  named: Pick<Hello, "node_id" | "generation">,
  identity: { readonly nodeId: NodeId; readonly generation: number; readonly lost?: LostCertificate },
): Promise<boolean> {
  const { nodeId, lost } = identity;
  if (named.node_id !== nodeId) return false;
  if (lost === undefined) return named.generation === identity.generation;
  const { serial } = lost.certificate;
  const accepted = await inTx(async (tx) => {
    const node = await lockNode(tx, nodeId);
    const verdict = await judge(tx, node, lost);
    if (node === null || verdict !== "accepted") return false;
    if (named.generation !== node.generation) return tellOtherGeneration(tx, node, named.generation);
    await keep(tx, node, lost, verdict);
    return beginUse(tx, nodeId, node.generation, serial);
  });
  if (accepted) log.info("a certificate from before the restore is known again", { node_id: nodeId, serial });
  return accepted;
}

async function inLostTime(
  db: Db,
  ca: CertificateAuthority,
  nodeId: NodeId,
  certificate: X509Certificate,
): Promise<LostCertificate | null> {
  const issuedAt = new Date(certificate.validFromDate.getTime() + NODE_BACKDATE_MS);
  const lost = (await readLostTimes(db)).find(
    ({ from, until }) =>
      issuedAt.getTime() > from.getTime() - SKEW_MS && issuedAt.getTime() < until.getTime() + SKEW_MS,
  );
  if (lost === undefined) return null;
  return {
    certificate: {
      serial: serialOf(certificate.serialNumber),
      nodeId,
      publicKeySha256: keySha256(certificate.publicKey.export({ type: "spki", format: "der" })),
      notBefore: certificate.validFromDate,
      notAfter: certificate.validToDate,
      issuedAt,
    },
    restoredAt: lost.until,
    byCaInForce: authorityOf(ca.issuerPem)(certificate),
  };
}

async function judge(tx: Tx, node: Node | null, lost: LostCertificate): Promise<LostVerdict> {
  if (node === null || node.status === "deleted") return "unknown";
  const { id, generation } = node;
  const others = await readOtherCertificates(tx, id, generation, lost.certificate.issuedAt);
  return lostVerdict({
    inLostTime: true,
    byCaInForce: lost.byCaInForce,
    generationSince: await areTokensSince(tx, id, generation, lost.restoredAt),
    revoked: others.revoked || (await readIdentityBlock(tx, id))?.generation === generation,
    laterInUse: others.laterInUse,
  });
}

const asRow = ({ certificate }: LostCertificate, { generation }: Node): KnownCertificate["certificate"] => ({
  ...certificate,
  generation,
  pem: null,
  firstUsedAt: null,
  replacedAt: null,
  replacedSeenAt: null,
  revokedAt: null,
  revokeReason: null,
});

/**
 * A certificate that the hub accepts although the restored database lacks it proves an enrollment, so a node that waits for its host goes on as it
 * does after an enrollment.
 */
async function keep(tx: Tx, node: Node, { certificate }: LostCertificate, verdict: LostVerdict): Promise<void> {
  const { id: nodeId, generation } = node;
  const { serial, publicKeySha256 } = certificate;
  await keepFoundCertificate(tx, { ...certificate, generation }, verdict === "replaced");
  await markTokensUsed(tx, nodeId, generation, publicKeySha256);
  await recordNodeEvent(tx, {
    nodeId,
    type: "certificate_renewed",
    owner: "agent",
    message:
      verdict === "accepted"
        ? "The database was restored from an older backup, and the host's newer certificate is accepted"
        : "The database was restored from an older backup, and this certificate of that time was replaced since",
    details: { serial, lost_time: verdict },
  });
  if (verdict === "accepted" && node.status === "bootstrap_issued") {
    await enrollManualNode(tx, node);
    await enrollExternalNode(tx, node);
    await enrollAdoptedNode(tx, node, { workflowId: null });
  }
  await wakeWorkflows(tx, [waitKey.node(nodeId)]);
}

const OTHER_GENERATION = "OtherGeneration";

/**
 * An agent of another generation tries to connect again and again, so the hub writes only one event to the node's history, and keeps the node's
 * condition.
 */
async function tellOtherGeneration(tx: Tx, node: Node, generation: number): Promise<false> {
  const message = `The host enrolled again after the backup from which the database was restored: its agent has generation ${generation}, and the node has generation ${node.generation}. The agent cannot connect. Look at the host first, because a tenant may use it. ${enrollAgain(node)}`;
  const before = (await readConditions(tx, node.id, node.generation)).find(({ type }) => type === "agent.connected");
  await writeConnected(tx, node, "False", OTHER_GENERATION, message);
  if (before?.reason !== OTHER_GENERATION)
    await recordNodeEvent(tx, {
      nodeId: node.id,
      type: "generation_differs",
      owner: "gateway",
      message,
      details: { of_agent: generation, of_node: node.generation },
    });
  return false;
}
